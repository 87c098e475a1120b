"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "01d193ad6ccaecfb0319474a4f3d39267b166e3b6477872a609a8739548ea161",
    },
    "postgres": {
        "0001_first": "db85828e5109188d46f7977b5db092abe7840743818367fc8d9d8935c08331cb",
    },
}
