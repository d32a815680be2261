"""`reasoner doctor`: the run that `reasoner train` would make of the same arguments, looked at before it is started."""
