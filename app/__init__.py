"""The dashboard. Its pages come with their own issue; the folder holds the place."""
