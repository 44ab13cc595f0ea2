"""The formats of a crawl's folder: their versions, what each changed, and the migrations from one to the next."""
