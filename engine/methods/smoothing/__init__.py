"""Methods whose server smooths the models of all clients as one tensor."""
