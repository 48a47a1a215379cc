"""The commands of the reference: `mqproof explore`, `equiv`, `prove` and `mutate`."""
