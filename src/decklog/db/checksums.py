"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "00add92153c0649f27006675cc6d8287849a9958df1377d4ab631f2da6d655e0",
    },
    "postgres": {
        "0001_first": "7edcdb5ec7a59033f21aa45aabc371be5a74027e8596ebad46ffe1f256b2efde",
    },
}
