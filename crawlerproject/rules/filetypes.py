"""Decides by its extension whether a file is worth fetching: a crawler for text wants no pictures or archives."""

from __future__ import annotations

from collections.abc import Collection

# Mischel ("Writing a web crawler: politeness"): skip useless extensions before queueing. The kinds are his,
# the newer formats (webp, avif, woff2, mjs ...) are from the IANA media type registry. Documents (pdf, doc,
# epub, txt, csv, xml, json) are kept: they hold text.
# Endings of domain names and words (.com, .au, .so, .less) are left out on purpose.
_PICTURES = (
    "apng art avif bmp cr2 cur dds dng emf eps gif heic heif icns ico jfif jp2 jpe jpeg jpg jxl jxr nef"
    " pbm pcx pgm png pnm ppm psd raw svg svgz tga tif tiff webp wmf xbm xcf xpm"
)
_SOUND = "aac ac3 aif aiff amr ape caf flac m3u m3u8 m4a m4b mid midi mka mp2 mp3 mpga oga ogg opus pls ra ram wav wma"
_FILM = (
    "3g2 3gp asf asx avi divx f4v flv m1v m2ts m2v m4s m4v mkv mov mp4 mpe mpeg mpg mts mxf ogm ogv qt rm rmvb"
    " swf ts vob webm wmv"
)
_ARCHIVES = "7z ace arj br bz2 cab cpio gz jar lha lz lz4 lzh lzma rar tar tbz tbz2 tgz txz war xz z zip zst"
_PROGRAMS = (
    "apk appimage appx bin class crx deb dex dll dmg dylib ear elf exe flatpak hqx img ipa iso lib"
    " msi msix msu o pkg pyc rpm sit snap vhd vhdx vmdk wasm whl xpi"
)
_PAGE_PARTS = "css eot js map mjs otf scss ttc ttf woff woff2"
_DATA = (
    "avro blend dae dat db dbf dwg dxf fbx glb gltf h5 hdf mdb npy npz"
    " obj orc parquet pb pcap ply shp sqlite stl torrent"
)

SKIP_EXTENSIONS = frozenset(
    " ".join((_PICTURES, _SOUND, _FILM, _ARCHIVES, _PROGRAMS, _PAGE_PARTS, _DATA)).split()
)  # lower-case, without the dot

# How sitemaps are packed (sitemaps.org): of a sitemap no reason to leave it.
_PACKED_SITEMAPS = frozenset({"gz"})


def useless(path: str, extensions: Collection[str] = SKIP_EXTENSIONS) -> bool:
    """Whether the last segment of a URL's path (no query) ends in one of ``extensions`` (lower-case, no dot)."""
    name = path[path.rfind("/") + 1 :].partition(";")[0]
    dot = name.rfind(".")
    return dot >= 0 and name[dot + 1 :].lower() in extensions


def extensions_of(listed: Collection[str]) -> frozenset[str]:
    """An operator's list as ``useless`` wants it: ".PNG" and "png" are the same."""
    return frozenset(word.strip().lower().lstrip(".") for word in listed if word.strip(" ."))


def of_sitemaps(extensions: Collection[str]) -> frozenset[str]:
    """What of a list is useless as a sitemap too."""
    return frozenset(extensions) - _PACKED_SITEMAPS
