"""Parts of torch.fx that are not supported."""
