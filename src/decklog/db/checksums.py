"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "ba3395b39998a04f1302ccd36ca1668d416cd842afe6bc2c0e3851fc2ab04ba1",
    },
    "postgres": {
        "0001_first": "1eefae52d8ad9eb5bc41f02c030bd94d880c3596f362434e41e2ffa15d52e2f0",
    },
}
