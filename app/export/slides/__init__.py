"""The style *slides* of an exported page: the same content, one thing at a time on the whole screen."""
