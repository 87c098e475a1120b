"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "ba3395b39998a04f1302ccd36ca1668d416cd842afe6bc2c0e3851fc2ab04ba1",
    },
    "postgres": {
        "0001_first": "1ebe531d82fcf87aad1e16e998d9dcc27e3a9b7629a81c81fdecfeb0710934d5",
    },
}
