"""The Machine screen: the findings of the doctor, and the state of the engine."""
