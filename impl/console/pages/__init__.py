"""The pages, one module for each subject of the navigation. A page reads the cluster and returns its parts."""
