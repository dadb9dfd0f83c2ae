"""Programs that write pages in docs/, and that run the commands on all pages."""
