"""Text, title and links of documents that are no web pages: PDF, docx, odt, epub.

Strangers made them, and large libraries read them. So they are read in a process that may die (``document_process``):
it has bounds of memory and time, no environment and no file to write to. ``document_texts`` runs it, for ``scrapy
process`` and for a crawl that follows the links of documents. ``kinds`` says what is one. Invariant: a document costs
itself, nothing else.
"""
