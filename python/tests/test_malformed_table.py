"""A table of malformed inputs: each is refused with file and line, or read in a way that is stated.

Of what is accepted, the edges are in the table, and the note that tells what was decided. What is
refused leaves nothing behind.
"""

from __future__ import annotations

import gzip
import io
import struct
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import tiergraph as tg


class Case(NamedTuple):
    """An input and what becomes of it."""

    name: str
    file: str
    content: bytes
    options: dict[str, Any]
    outcome: str | list[Any]
    """What the message says, or the edges."""
    note: str = ""
    """What a note says of accepted input."""


def npy(array, fortran=False):
    """The file of an array."""
    file = io.BytesIO()
    np.save(file, np.asfortranarray(array) if fortran else array)
    return file.getvalue()


PACKED = gzip.compress(b"1 2\n" * 1000)

CASES = [
    Case(
        "empty", "e.txt", b"", {}, "read `e.txt`: expected lines of edges, got a file without any"
    ),
    Case(
        "blank lines only",
        "e.txt",
        b"\n\n\n",
        {},
        "read `e.txt`: expected lines of edges, got a file without any",
    ),
    Case(
        "comments only",
        "e.txt",
        b"# a\n% b\n",
        {},
        "read `e.txt`: expected lines of edges, got a file without any",
    ),
    Case(
        "header only",
        "e.csv",
        b"src,dst\n",
        {},
        "read `e.csv`: expected lines of edges, got a file without any",
    ),
    Case(
        "one number",
        "e.txt",
        b"7\n",
        {},
        "read line 1 of `e.txt`: expected a target id in column 2, got `7`",
    ),
    Case(
        "one number on a later line",
        "e.txt",
        b"1 2\n3\n4 5\n",
        {},
        "read line 2 of `e.txt`: expected a target id in column 2, got `3`",
    ),
    Case(
        "a negative id",
        "e.txt",
        b"1 2\n-3 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `-3`"),
    ),
    Case(
        "a fraction",
        "e.txt",
        b"1 2\n3.5 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `3.5`"),
    ),
    Case(
        "a whole fraction",
        "e.txt",
        b"1 2\n3.0 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `3.0`"),
    ),
    Case(
        "an exponent",
        "e.txt",
        b"1 2\n1e3 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `1e3`"),
    ),
    Case(
        "hexadecimal",
        "e.txt",
        b"1 2\n0x10 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `0x10`"),
    ),
    Case(
        "a plus sign",
        "e.txt",
        b"1 2\n+3 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `+3`"),
    ),
    Case(
        "an id of 2^64",
        "e.txt",
        b"1 2\n18446744073709551616 4\n",
        {},
        (
            "read line 2 of `e.txt`: expected an unsigned 64-bit integer in column "
            "1, got `18446744073709551616`"
        ),
    ),
    Case(
        "an id of 2^64-1",
        "e.txt",
        b"1 2\n18446744073709551615 2\n",
        {"ids": "map"},
        [(1, 2), (18446744073709551615, 2)],
    ),
    Case(
        "21 digits",
        "e.txt",
        b"1 2\n100000000000000000000 4\n",
        {},
        (
            "read line 2 of `e.txt`: expected an unsigned 64-bit integer in column "
            "1, got `100000000000000000000`"
        ),
    ),
    Case(
        "thousands separated",
        "e.txt",
        b"1 2\n1,000 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `1,000`"),
    ),
    Case(
        "underscores",
        "e.txt",
        b"1 2\n1_000 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `1_000`"),
    ),
    Case("leading zeros", "e.txt", b"001 002\n003 1\n", {}, [(1, 2), (3, 1)]),
    Case(
        "a name",
        "e.txt",
        b"1 2\nalice 3\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `alice`"),
    ),
    Case(
        "quoted numbers",
        "e.csv",
        b'"1","2"\n"2","3"\n',
        {},
        (
            "read line 1 of `e.csv`: expected an unsigned 64-bit integer in column "
            '1, got `\\"1\\",\\"2\\"`'
        ),
    ),
    Case(
        "letters after digits",
        "e.txt",
        b"1 2\n3x 4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `3x`"),
    ),
    Case(
        "missing value",
        "e.csv",
        b"1,2\n3,\n",
        {},
        "read line 2 of `e.csv`: expected a target id in column 2, got `3,`",
    ),
    Case(
        "missing source",
        "e.csv",
        b"1,2\n,3\n",
        {},
        ("read line 2 of `e.csv`: expected an unsigned 64-bit integer in column 1, got ``"),
    ),
    Case(
        "nan id",
        "e.txt",
        b"1 2\nnan 3\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `nan`"),
    ),
    Case(
        "NULL id",
        "e.csv",
        b"1,2\nNULL,3\n",
        {},
        ("read line 2 of `e.csv`: expected an unsigned 64-bit integer in column 1, got `NULL`"),
    ),
    Case(
        "unicode digits",
        "e.txt",
        "1 2\n\uff13 \uff14\n".encode(),
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `\uff13`"),
    ),
    Case("no line feed at the end", "e.txt", b"1 2\n2 3", {}, [(1, 2), (2, 3)]),
    Case("Windows line ends", "e.txt", b"1 2\r\n2 3\r\n", {}, [(1, 2), (2, 3)]),
    Case("old Mac line ends", "e.txt", b"1 2\r2 3\r", {}, [(1, 2), (2, 3)]),
    Case(
        "mixed line ends", "e.txt", b"1 2\r\n2 3\n3 4\r5 6\n", {}, [(1, 2), (2, 3), (3, 4), (5, 6)]
    ),
    Case("byte order mark", "e.txt", b"\xef\xbb\xbf1 2\n2 3\n", {}, [(1, 2), (2, 3)]),
    Case(
        "UTF-16",
        "e.txt",
        b"\xff\xfe1\x00 \x002\x00\n\x00",
        {},
        "read `e.txt`: expected text in UTF-8 or ASCII, got UTF-16",
    ),
    Case("a NUL inside", "e.txt", b"1 2\n2\x00 3\n", {}, "got bytes that are not text"),
    Case("binary", "e.txt", bytes(range(256)), {}, "got bytes that are not text"),
    Case(
        "form feed",
        "e.txt",
        b"1 2\n\x0c\n2 3\n",
        {},
        "read line 2 of `e.txt`: expected a source id in column 1, got ``",
    ),
    Case(
        "vertical tab between",
        "e.txt",
        b"1\x0b2\n",
        {},
        ("read line 1 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `1\\u{b}2`"),
    ),
    Case(
        "non-breaking space",
        "e.txt",
        "1 2\n2\xa03\n".encode(),
        {},
        (
            "read line 2 of `e.txt`: expected an unsigned 64-bit integer in column "
            "1, got `2\\u{a0}3`"
        ),
    ),
    Case("trailing blanks", "e.txt", b"1 2   \n2 3\t\n", {}, [(1, 2), (2, 3)]),
    Case("leading blanks", "e.txt", b"   1 2\n\t2 3\n", {}, [(1, 2), (2, 3)]),
    Case("several blanks", "e.txt", b"1     2\n2 \t 3\n", {}, [(1, 2), (2, 3)]),
    Case("tabs", "e.txt", b"1\t2\n2\t3\n", {}, [(1, 2), (2, 3)]),
    Case("an empty field between tabs", "e.txt", b"1\t\t2\n2\t\t3\n", {}, [(1, 2), (2, 3)]),
    Case("semicolons", "e.txt", b"1;2\n2;3\n", {}, [(1, 2), (2, 3)]),
    Case("bars", "e.txt", b"1|2\n2|3\n", {}, [(1, 2), (2, 3)]),
    Case("colons", "e.txt", b"1:2\n2:3\n", {}, [(1, 2), (2, 3)]),
    Case(
        "arrows",
        "e.txt",
        b"1->2\n2->3\n",
        {},
        ("read line 1 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `1->2`"),
    ),
    Case("a delimiter at the end", "e.csv", b"1,2,\n2,3,\n", {}, [(1, 2), (2, 3)]),
    Case("two delimiters at the end", "e.csv", b"1,2,,\n2,3,,\n", {}, [(1, 2), (2, 3)]),
    Case(
        "another delimiter later",
        "e.csv",
        b"1,2\n3 4\n",
        {},
        ("read line 2 of `e.csv`: expected an unsigned 64-bit integer in column 1, got `3 4`"),
    ),
    Case(
        "another delimiter later, blanks first",
        "e.txt",
        b"1 2\n3,4\n",
        {},
        ("read line 2 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `3,4`"),
    ),
    Case(
        "brackets",
        "e.txt",
        b"[1, 2]\n[2, 3]\n",
        {},
        ("read line 1 of `e.txt`: expected an unsigned 64-bit integer in column 1, got ``"),
    ),
    Case(
        "tuples",
        "e.txt",
        b"(1, 2)\n(2, 3)\n",
        {},
        ("read line 1 of `e.txt`: expected an unsigned 64-bit integer in column 1, got ``"),
    ),
    Case("JSON lines", "e.txt", b'{"src": 1, "dst": 2}\n', {}, "got JSON"),
    Case("XML", "e.txt", b"<graph>\n<edge/>\n</graph>\n", {}, "got XML, as GraphML and GEXF are"),
    Case(
        "GraphML",
        "e.txt",
        b'<?xml version="1.0"?>\n<graphml/>\n',
        {},
        "got XML, as GraphML and GEXF are",
    ),
    Case("GML", "e.txt", b"graph [\n  node [ id 1 ]\n]\n", {}, "got GML"),
    Case("Pajek", "e.txt", b'*Vertices 2\n1 "a"\n2 "b"\n*Arcs\n1 2\n', {}, "got Pajek's format"),
    Case("DOT", "e.txt", b"digraph g {\n  1 -> 2;\n}\n", {}, "got DOT"),
    Case("GEXF", "e.txt", b'<gexf xmlns="x">\n</gexf>\n', {}, "got XML, as GraphML and GEXF are"),
    Case("a comment at a line's end", "e.txt", b"1 2 # why\n2 3\n", {}, [(1, 2), (2, 3)]),
    Case(
        "a comment after commas",
        "e.csv",
        b"1,2 # why\n2,3\n",
        {},
        ("read line 1 of `e.csv`: expected an unsigned 64-bit integer in column 2, got `2 # why`"),
    ),
    Case("comments with //", "e.txt", b"// c\n1 2\n", {}, [(1, 2)]),
    Case(
        "comments with --",
        "e.txt",
        b"-- c\n1 2\n",
        {},
        ("read line 1 of `e.txt`: expected an unsigned 64-bit integer in column 1, got `--`"),
    ),
    Case(
        "more columns later",
        "e.txt",
        b"1 2\n2 3 4\n",
        {},
        "got lines of numbers of which some have more columns than others",
    ),
    Case(
        "fewer columns later",
        "e.txt",
        b"1 2 3\n2 3\n",
        {},
        "got lines of numbers of which some have more columns than others",
    ),
    Case(
        "ragged lists",
        "e.txt",
        b"1 2 3\n2 3\n4 5 6 7\n",
        {},
        "got lines of numbers of which some have more columns than others",
    ),
    Case(
        "one line of many numbers",
        "e.txt",
        b"1 2 3 4 5\n",
        {},
        "read `e.txt`: expected an edge a line, got 5 numbers on its only line",
    ),
    Case("text in a third column", "e.txt", b"1 2 a\n2 3 b\n", {}, [(1, 2), (2, 3)]),
    Case(
        "text then numbers in a third column",
        "e.txt",
        b"1 2 a\n2 3 4\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column `3` of `e.txt` is not used, as not all of it are numbers of 0 "
            "or more; `--weights 3` takes `3` for weights"
        ),
    ),
    Case(
        "NetworkX dictionaries",
        "e.txt",
        b"1 2 {'weight': 3}\n2 3 {'weight': 4}\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column 3 of `e.txt` is not used, as it is no number; NetworkX writes "
            "numbers by `write_weighted_edgelist`"
        ),
    ),
    Case("NetworkX empty dictionaries", "e.txt", b"1 2 {}\n2 3 {}\n", {}, [(1, 2), (2, 3)]),
    Case(
        "times in a third column",
        "e.txt",
        b"1 2 1600000000\n2 3 1600000001\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column `3` of `e.txt` is not used, as it looks like times; `--weights "
            "3` takes `3` for weights"
        ),
    ),
    Case("header of other names", "e.csv", b"a,b\n1,2\n", {}, [(1, 2)]),
    Case("header with one name for two", "e.txt", b"src\n1 2\n", {}, [(1, 2)]),
    Case(
        "header of three, lines of two",
        "e.csv",
        b"src,dst,weight\n1,2\n",
        {},
        "read line 2 of `e.csv`: expected 3 fields, as the header has, got 2",
    ),
    Case(
        "header of two, lines of three",
        "e.csv",
        b"src,dst\n1,2,3\n",
        {},
        "read line 2 of `e.csv`: expected 2 fields, as the header has, got 3",
    ),
    Case(
        "header twice",
        "e.csv",
        b"src,dst\nsrc,dst\n1,2\n",
        {},
        ("read line 2 of `e.csv`: expected an unsigned 64-bit integer in column 1, got `src`"),
    ),
    Case(
        "header later",
        "e.csv",
        b"1,2\nsrc,dst\n",
        {},
        ("read line 2 of `e.csv`: expected an unsigned 64-bit integer in column 1, got `src`"),
    ),
    Case("header in quotes", "e.csv", b'"src","dst"\n1,2\n', {}, [(1, 2)]),
    Case("header with equal names", "e.csv", b"src,src\n1,2\n", {}, [(1, 2)]),
    Case("header swapped", "e.csv", b"dst,src\n1,2\n", {}, [(2, 1)]),
    Case("an index column", "e.csv", b",src,dst\n0,1,2\n1,2,3\n", {}, [(1, 2), (2, 3)]),
    Case(
        "three columns of ids with names",
        "e.csv",
        b"id,src,dst\n9,1,2\n8,2,3\n",
        {},
        [(1, 2), (2, 3)],
        "column `id` of `e.csv` is not used; `--weights id` takes `id` for weights",
    ),
    Case(
        "unclosed quote",
        "e.csv",
        b'"1,2\n2,3\n',
        {},
        ('read line 1 of `e.csv`: expected an unsigned 64-bit integer in column 1, got `\\"1,2`'),
    ),
    Case(
        "weights",
        "e.txt",
        b"1 2 0.5\n2 3 1.5\n",
        {},
        [(1, 2, 0.5), (2, 3, 1.5)],
        "column 3 of `e.txt` is taken for weights; `--weights none` leaves it out",
    ),
    Case(
        "negative weight",
        "e.txt",
        b"1 2 0.5\n2 3 -1.5\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column `3` of `e.txt` is not used, as not all of it are numbers of 0 "
            "or more; `--weights 3` takes `3` for weights"
        ),
    ),
    Case(
        "nan weight",
        "e.txt",
        b"1 2 0.5\n2 3 nan\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column `3` of `e.txt` is not used, as not all of it are numbers of 0 "
            "or more; `--weights 3` takes `3` for weights"
        ),
    ),
    Case(
        "infinite weight",
        "e.txt",
        b"1 2 0.5\n2 3 inf\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column `3` of `e.txt` is not used, as not all of it are numbers of 0 "
            "or more; `--weights 3` takes `3` for weights"
        ),
    ),
    Case(
        "empty weight",
        "e.csv",
        b"1,2,0.5\n2,3,\n",
        {},
        ("read line 2 of `e.csv`: expected a weight of 0 or more in column 3, got `2,3,`"),
    ),
    Case(
        "weight with a comma",
        "e.csv",
        b"1;2;0,5\n2;3;1,5\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column `3` of `e.csv` is not used, as not all of it are numbers of 0 "
            "or more; `--weights 3` takes `3` for weights"
        ),
    ),
    Case(
        "weight with units",
        "e.txt",
        b"1 2 0.5km\n2 3 1km\n",
        {},
        [(1, 2), (2, 3)],
        (
            "column `3` of `e.txt` is not used, as not all of it are numbers of 0 "
            "or more; `--weights 3` takes `3` for weights"
        ),
    ),
    Case(
        "negative weight in .wel",
        "e.wel",
        b"0 1 2\n1 2 -1\n",
        {},
        ("read line 2 of `e.wel`: expected a weight of 0 or more in column 3, got `-1`"),
    ),
    Case(
        "no weight in .wel",
        "e.wel",
        b"0 1\n1 2\n",
        {},
        (
            "read weights from `e.wel`: expected no weights, as the file has only "
            "the two columns of ids, got column 3"
        ),
    ),
    Case(
        "weights asked for, none there",
        "e.txt",
        b"1 2\n2 3\n",
        {"weights": "3"},
        (
            "read weights from `e.txt`: expected no weights, as the file has only "
            "the two columns of ids, got column 3"
        ),
    ),
    Case(
        "weights by name, none there",
        "e.csv",
        b"src,dst\n1,2\n",
        {"weights": "cost"},
        (
            "read weights from `e.csv`: expected no weights, as the file has only "
            "the two columns of ids, got `cost`"
        ),
    ),
    Case(
        "a weight column that is an id",
        "e.csv",
        b"src,dst\n1,2\n",
        {"weights": "dst"},
        (
            "read weights from `e.csv`: expected no weights, as the file has only "
            "the two columns of ids, got `dst`"
        ),
    ),
    Case(
        "weights asked for, text there",
        "e.txt",
        b"1 2 a\n",
        {"weights": "3"},
        ("read line 1 of `e.txt`: expected a weight of 0 or more in column 3, got `a`"),
    ),
    Case(
        "overflowing weight",
        "e.txt",
        b"1 2 1e400\n",
        {},
        [(1, 2)],
        (
            "column `3` of `e.txt` is not used, as not all of it are numbers of 0 "
            "or more; `--weights 3` takes `3` for weights"
        ),
    ),
    Case(
        "a column that is not there",
        "e.csv",
        b"src,dst\n1,2\n",
        {"columns": ["src", "to"]},
        "find the edges in `e.csv`: expected a column `to`, got `src`, `dst`",
    ),
    Case(
        "a column twice",
        "e.csv",
        b"src,dst\n1,2\n",
        {"columns": ["src", "src"]},
        "choose columns of `e.csv`: expected each column once, got `src` twice",
    ),
    Case(
        "one column",
        "e.csv",
        b"src,dst\n1,2\n",
        {"columns": ["src"]},
        "choose columns of `e.csv`: expected 2 or 3 names, got 1",
    ),
    Case(
        "column 0",
        "e.txt",
        b"1 2\n",
        {"columns": ["0", "1"]},
        ("find the edges in `e.txt`: expected a column `0`, got columns 1 to 2 without names"),
    ),
    Case(
        "column 5 of 2",
        "e.txt",
        b"1 2\n",
        {"columns": ["1", "5"]},
        ("find the edges in `e.txt`: expected a column `5`, got columns 1 to 2 without names"),
    ),
    Case(
        "columns by number", "e.txt", b"9 1 2\n8 2 3\n", {"columns": ["2", "3"]}, [(1, 2), (2, 3)]
    ),
    Case("gzip cut off", "e.txt.gz", PACKED[:30], {}, "unzip `e.txt.gz`: it ends too early"),
    Case(
        "gzip with a wrong checksum",
        "e.txt.gz",
        PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:],
        {},
        "unzip `e.txt.gz`: corrupt gzip stream does not have a matching checksum",
    ),
    Case(
        "gzip of nothing",
        "e.txt.gz",
        gzip.compress(b""),
        {},
        "read `e.txt.gz`: expected lines of edges, got a file without any",
    ),
    Case(
        "gzip twice",
        "e.txt.gz.gz",
        gzip.compress(gzip.compress(b"1 2\n")),
        {},
        "got bytes that are not text",
    ),
    Case("text called gzip", "e.txt.gz", b"1 2\n", {}, [(1, 2)]),
    Case("gzip called text", "e.txt", gzip.compress(b"1 2\n2 3\n"), {}, [(1, 2), (2, 3)]),
    Case(
        "rubbish after gzip",
        "e.txt.gz",
        gzip.compress(b"1 2\n") + b"rubbish",
        {},
        "unzip `e.txt.gz`: it ends too early",
    ),
    Case(
        "zstd cut off",
        "e.txt.zst",
        b"\x28\xb5\x2f\xfd\x04",
        {},
        "unpack `e.txt.zst`: a frame that is damaged or cut off",
    ),
    Case(
        "xz cut off",
        "e.txt.xz",
        b"\xfd7zXZ\x00\x00\x04",
        {},
        "unpack `e.txt.xz`: it ends too early",
    ),
    Case(
        "bzip2 of rubbish",
        "e.txt.bz2",
        b"BZh9rubbish",
        {},
        "unpack `e.txt.bz2`: bzip2: invalid data",
    ),
    Case("a zip archive", "e.zip", b"PK\x03\x04rest", {}, "got a zip archive"),
    Case(
        "a packed array",
        "e.npy.gz",
        gzip.compress(npy(np.zeros((2, 2), np.int64))),
        {},
        "got a packed binary file",
    ),
    Case("Parquet called text", "e.txt", b"PAR1\x00\x00", {}, "got Parquet"),
    Case("Arrow called text", "e.txt", b"ARROW1\x00\x00", {}, "got Arrow"),
    Case("HDF5", "e.h5", b"\x89HDF\r\n", {}, "got HDF5"),
    Case("Avro", "e.avro", b"Obj\x01", {}, "got Avro"),
    Case("ORC", "e.orc", b"ORC", {}, "got ORC"),
    Case(
        "npy of floats",
        "e.npy",
        npy(np.zeros((3, 2))),
        {},
        "read `e.npy`: expected an array of integers, got the type '<f8'",
    ),
    Case(
        "npy of one dimension",
        "e.npy",
        npy(np.zeros(6, np.int64)),
        {},
        "read `e.npy`: expected the shape (E, 2) or (2, E), got (6,)",
    ),
    Case(
        "npy of three columns",
        "e.npy",
        npy(np.zeros((4, 3), np.int64)),
        {},
        "read `e.npy`: expected the shape (E, 2) or (2, E), got (4, 3)",
    ),
    Case(
        "npy of negative ids",
        "e.npy",
        npy(np.array([[0, 1], [-1, 2]])),
        {},
        "read edge 1 of `e.npy`: expected ids of 0 or more, got `-1`",
    ),
    Case(
        "npy of big-endian ids",
        "e.npy",
        npy(np.array([[0, 1], [1, 2]], ">i4")),
        {},
        [(0, 1), (1, 2)],
    ),
    Case(
        "npy of truth values",
        "e.npy",
        npy(np.zeros((2, 2), bool)),
        {},
        "read `e.npy`: expected an array of integers, got the type '|b1'",
    ),
    Case(
        "npy of texts",
        "e.npy",
        npy(np.array([["a", "b"]])),
        {},
        "read `e.npy`: expected an array of numbers, got the type '<U1'",
    ),
    Case(
        "npy cut off",
        "e.npy",
        npy(np.zeros((4, 2), np.int64))[:-5],
        {},
        "read `e.npy`: expected 4 edges of 16 bytes after the header, got 59 bytes",
    ),
    Case(
        "npy too long",
        "e.npy",
        npy(np.zeros((4, 2), np.int64)) + b"x",
        {},
        "read `e.npy`: expected 4 edges of 16 bytes after the header, got 65 bytes",
    ),
    Case("npy of no edges", "e.npy", npy(np.zeros((0, 2), np.int64)), {}, []),
    Case(
        "npy in Fortran order",
        "e.npy",
        npy(np.array([[0, 1], [1, 2], [2, 3]]), True),
        {},
        [(0, 1), (1, 2), (2, 3)],
    ),
    Case(
        "npy transposed",
        "e.npy",
        npy(np.array([[0, 1, 2], [1, 2, 3]])),
        {},
        [(0, 1), (1, 2), (2, 3)],
    ),
    Case(
        "npy without a header",
        "e.npy",
        b"\x93NUMPY\x01\x00",
        {},
        ("read `e.npy`: expected a NumPy array, got a file that ends before its header does"),
    ),
    Case(
        "text called npy",
        "e.npy",
        b"1 2\n",
        {},
        ("read `e.npy`: expected a NumPy array, got a file that ends before its header does"),
    ),
    Case("npy called text", "e.txt", npy(np.array([[0, 1], [1, 2]])), {}, [(0, 1), (1, 2)]),
    Case(
        "u32 of an odd length",
        "e.u32",
        b"\0" * 12,
        {},
        "read `e.u32`: expected pairs of 8 bytes, got 12 bytes",
    ),
    Case("u32 of nothing", "e.u32", b"", {}, []),
    Case(
        "u64 of an odd length",
        "e.u64",
        b"\0" * 20,
        {},
        "read `e.u64`: expected pairs of 16 bytes, got 20 bytes",
    ),
    Case(
        "u64 of large ids",
        "e.u64",
        struct.pack("<4Q", 1, 2**63, 2**63, 1),
        {},
        [(1, 9223372036854775808), (9223372036854775808, 1)],
    ),
    Case(
        "mtx without a banner",
        "e.mtx",
        b"3 3 1\n1 2\n",
        {},
        (
            "read line 1 of `e.mtx`: expected `%%MatrixMarket matrix coordinate "
            "FIELD SYMMETRY` on line 1, got `3 3 1`"
        ),
    ),
    Case(
        "mtx of an array",
        "e.mtx",
        b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
        {},
        (
            "read line 1 of `e.mtx`: expected `%%MatrixMarket matrix coordinate "
            "FIELD SYMMETRY` on line 1, got `%%matrixmarket matrix array real "
            "general`"
        ),
    ),
    Case(
        "mtx of complex numbers",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 0 1\n",
        {},
        (
            "read line 1 of `e.mtx`: expected the field `real`, `integer` or "
            "`pattern`, got `complex`"
        ),
    ),
    Case(
        "mtx that is hermitian",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate real hermitian\n2 2 1\n1 2 1\n",
        {},
        (
            "read line 1 of `e.mtx`: expected `general`, `symmetric` or "
            "`skew-symmetric`, got `hermitian`"
        ),
    ),
    Case(
        "mtx that is oblong",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 2\n",
        {},
        (
            "read line 2 of `e.mtx`: expected a square matrix, of edges between "
            "vertices, got 2 rows and 3 columns"
        ),
    ),
    Case(
        "mtx without sizes",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n",
        {},
        ("read line 2 of `e.mtx`: expected the rows, as many columns, and the entries, got ``"),
    ),
    Case(
        "mtx with two sizes",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2\n1 2\n",
        {},
        ("read line 2 of `e.mtx`: expected the rows, as many columns, and the entries, got `2 2`"),
    ),
    Case(
        "mtx with fewer entries",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n",
        {},
        "read all of `e.mtx`: expected 2 edges, as its header says, got 1",
    ),
    Case(
        "mtx with more entries",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n2 1\n",
        {},
        "read all of `e.mtx`: expected 1 edges, as its header says, got 2",
    ),
    Case(
        "mtx of row 0",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n0 1\n",
        {},
        "read line 3 of `e.mtx`: expected a vertex from 1 to 2, got `0`",
    ),
    Case(
        "mtx of row 3 of 2",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n3 1\n",
        {},
        "read line 3 of `e.mtx`: expected a vertex from 1 to 2, got `3`",
    ),
    Case(
        "mtx without a value",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2\n",
        {},
        "read line 3 of `e.mtx`: expected a number, got the end of the line",
    ),
    Case(
        "mtx of a negative value",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -3\n",
        {},
        "read line 3 of `e.mtx`: expected a weight of 0 or more, got `-3`",
    ),
    Case(
        "mtx with a value too many",
        "e.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2 3\n",
        {},
        "read line 3 of `e.mtx`: expected the end of the line, got `3`",
    ),
    Case(
        "mtx in capitals",
        "e.mtx",
        b"%%MATRIXMARKET MATRIX COORDINATE PATTERN GENERAL\n2 2 1\n1 2\n",
        {},
        [(1, 2)],
    ),
    Case(
        "METIS with one end",
        "e.graph",
        b"3 2\n2\n1 3\n\n",
        {},
        (
            "read all of `e.graph`: expected every edge from both ends, with the "
            "same weight, got edges from one end only"
        ),
    ),
    Case(
        "METIS with fewer lines",
        "e.graph",
        b"3 1\n2\n1\n",
        {},
        "read all of `e.graph`: expected 3 lines of neighbours, got 2",
    ),
    Case(
        "METIS with more lines",
        "e.graph",
        b"2 1\n2\n1\n1\n",
        {},
        ("read line 4 of `e.graph`: expected the end after 2 lines of neighbours, got `1`"),
    ),
    Case(
        "METIS of vertex 0",
        "e.graph",
        b"2 1\n0\n1\n",
        {},
        "read line 2 of `e.graph`: expected a vertex from 1 to 2, got `0`",
    ),
    Case(
        "METIS of other weights",
        "e.graph",
        b"2 1 1\n2 5\n1 6\n",
        {},
        (
            "read all of `e.graph`: expected every edge from both ends, with the "
            "same weight, got edges from one end only"
        ),
    ),
    Case(
        "METIS of an unknown format",
        "e.graph",
        b"2 1 7\n2\n1\n",
        {},
        (
            "read line 1 of `e.graph`: expected the vertices, the edges, and "
            "perhaps a format such as 001 or 011, got `7`"
        ),
    ),
    Case(
        "METIS with an odd count",
        "e.graph",
        b"2 1 1\n2\n1\n",
        {},
        "read line 2 of `e.graph`: expected a number, got the end of the line",
    ),
    Case(
        "DIMACS without p",
        "e.gr",
        b"a 1 2 3\n",
        {},
        ("read line 1 of `e.gr`: expected `p`, a kind, the vertices and the edges, got `a 1 2 3`"),
    ),
    Case(
        "DIMACS of vertex 4 of 3",
        "e.gr",
        b"p sp 3 1\na 1 4 1\n",
        {},
        "read line 2 of `e.gr`: expected a vertex from 1 to 3, got `4`",
    ),
    Case(
        "DIMACS without a length",
        "e.gr",
        b"p sp 3 1\na 1 2\n",
        {},
        "read line 2 of `e.gr`: expected a number, got the end of the line",
    ),
    Case(
        "DIMACS with fewer arcs",
        "e.gr",
        b"p sp 3 2\na 1 2 1\n",
        {},
        "read all of `e.gr`: expected 2 edges, as its header says, got 1",
    ),
    Case(
        "DIMACS with another letter",
        "e.gr",
        b"p sp 3 1\nz 1 2 1\n",
        {},
        ("read line 2 of `e.gr`: expected a line that begins with `a` or `e`, got `z`"),
    ),
    Case(
        "DIMACS of a negative length",
        "e.gr",
        b"p sp 3 1\na 1 2 -1\n",
        {},
        "read line 2 of `e.gr`: expected a weight of 0 or more, got `-1`",
    ),
    Case(
        "adjacency of text",
        "e.txt",
        b"1 2\n2 x\n",
        {"format": "adjacency"},
        "read line 2 of `e.txt`: expected an unsigned 64-bit integer, got `x`",
    ),
    Case(
        "adjacency of a negative id",
        "e.txt",
        b"1 2\n2 -1\n",
        {"format": "adjacency"},
        "read line 2 of `e.txt`: expected an unsigned 64-bit integer, got `-1`",
    ),
    Case(
        "adjacency from one end",
        "e.txt",
        b"1 2\n2\n",
        {"format": "adjacency", "undirected": True},
        (
            "read all of `e.txt`: expected every edge of an undirected list from "
            "both ends, got edges from one end only"
        ),
    ),
    Case("adjacency of isolated vertices", "e.txt", b"1\n2\n", {"format": "adjacency"}, []),
    Case(
        "ASCII graph with fewer lines",
        "e.graph-txt",
        b"3\n1\n",
        {},
        "read all of `e.graph-txt`: expected 3 lines of successors, got 1",
    ),
    Case(
        "ASCII graph of a large successor",
        "e.graph-txt",
        b"2\n1\n5\n",
        {},
        "read line 3 of `e.graph-txt`: expected a vertex below 2, got `5`",
    ),
    Case(
        "ASCII graph without a count",
        "e.graph-txt",
        b"x\n1\n",
        {},
        "read line 1 of `e.graph-txt`: expected the number of vertices, got `x`",
    ),
    Case("an unknown format", "e.txt", b"1 2\n", {"format": "excel"}, "use the format `excel`"),
    Case(
        "text as u32",
        "e.txt",
        b"1 2\n2 3 \n",
        {"format": "u32"},
        "read `e.txt`: expected pairs of 8 bytes, got 9 bytes",
    ),
    Case(
        "columns of an array",
        "e.npy",
        npy(np.zeros((2, 2), np.int64)),
        {"columns": ["a", "b"]},
        (
            "choose columns of `e.npy`: expected a table or text, for `columns`, "
            "got the format `npy`"
        ),
    ),
    Case(
        "vertices too few",
        "e.txt",
        b"0 5\n",
        {"vertices": 3},
        "use the id `5`: expected ids below 3, as `vertices=3` says",
    ),
    Case(
        "names of an array",
        "e.npy",
        npy(np.zeros((2, 2), np.int64)),
        {"ids": "names"},
        (
            "read names of vertices from `e.npy`: expected a table or text, for "
            '`ids="names"`, got the format `npy`, whose ids are numbers'
        ),
    ),
    Case(
        "names with an empty one",
        "e.csv",
        b"a,b\nc,\n",
        {"ids": "names"},
        "read line 2 of `e.csv`: expected a target id in column 2, got `c,`",
    ),
    Case(
        "names in Latin-1",
        "e.txt",
        b"a b\nc \xe9\n",
        {"ids": "names"},
        "read line 2 of `e.txt`: expected a name in UTF-8 in column 2, got `�`",
    ),
    Case(
        "names with a third column",
        "e.txt",
        b"a b 1\nb c x\n",
        {"ids": "names", "weights": "3"},
        ("read line 2 of `e.txt`: expected a weight of 0 or more in column 3, got `x`"),
    ),
    Case(
        "names of one column",
        "e.txt",
        b"a\nb\n",
        {"ids": "names"},
        "read line 1 of `e.txt`: expected a target id in column 2, got `a`",
    ),
    Case(
        "names of unequal lines",
        "e.txt",
        b"a b\nc d e\n",
        {"ids": "names"},
        "read line 2 of `e.txt`: expected 2 fields, as before, got 3",
    ),
    Case(
        "names like numbers",
        "e.txt",
        b"1 01\n01 1.0\n",
        {"ids": "names"},
        [("1", "01"), ("01", "1.0")],
    ),
    Case(
        "far ids as dense",
        "e.txt",
        b"1 2\n5000000000 3\n",
        {"ids": "dense"},
        (
            "use the id `5000000000`: expected ids up to 4294967294, as a build "
            "keeps 4-byte ids in memory"
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_a_malformed_input(tmp_path, case):
    source, target = tmp_path / case.file, tmp_path / "g.tg"
    source.write_bytes(case.content)
    if isinstance(case.outcome, str):
        with pytest.raises(tg.Error) as refused:
            tg.build(source, target, **case.options)
        assert case.outcome in str(refused.value).replace(f"{tmp_path}/", "")
        assert [path.name for path in tmp_path.iterdir()] == [case.file]
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tg.InputWarning)
        notes = tg.build(source, target, **case.options)["notes"]
    assert case.note in "".join(notes).replace(f"{tmp_path}/", "")
    with tg.open(target) as graph:
        batches = list(graph.edge_batches())
        edges = sorted(row for b in batches for row in zip(*(c.tolist() for c in b), strict=True))
        if graph.names is not None:
            edges = [(graph.names[a], graph.names[b]) for a, b in edges]
    assert edges == case.outcome


def test_the_table_is_as_long_as_it_has_to_be():
    assert len({case.name for case in CASES}) == len(CASES) >= 150
