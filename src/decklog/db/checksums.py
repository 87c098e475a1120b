"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "00add92153c0649f27006675cc6d8287849a9958df1377d4ab631f2da6d655e0",
    },
    "postgres": {
        "0001_first": "bae304610ea3fb13e99a6e349d715444ead49ff88fe840ec4481e79b73a29dc2",
    },
}
