"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "01d193ad6ccaecfb0319474a4f3d39267b166e3b6477872a609a8739548ea161",
        "0002_partitions": "4a23cffcc9c9055f8b810c7c08ee0b980d9c8cbd46e0c912f2d1b5cde57a03a2",
    },
    "postgres": {
        "0001_first": "eb77ef6794b4c6bfc142e9f209ec012f5458b64d3601a558a46236cba02c10b7",
        "0002_partitions": "2e95dfd2da6b39d4c7fb80c83935457264eceb300559da75ea96719f144ec4ed",
    },
}
