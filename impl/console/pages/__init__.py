"""The pages, one module for each subject. A page reads the cluster and returns its parts."""
