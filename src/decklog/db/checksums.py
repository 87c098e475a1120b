"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "00add92153c0649f27006675cc6d8287849a9958df1377d4ab631f2da6d655e0",
    },
    "postgres": {
        "0001_first": "9308c042946e3ffbb224170c31135f25f778852e69f782a51cdbc55fa059aadc",
    },
}
