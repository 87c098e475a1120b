"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "01d193ad6ccaecfb0319474a4f3d39267b166e3b6477872a609a8739548ea161",
        "0002_partitions": "f7c80b3d0b1c8238e98fe31a6703c09667283eb32eb99a95a38765033e503105",
        "0003_spend_days": "4f7626949c54751b5fce24392db1b319598e9b5fa76d1149ff795a99cae0dc47",
    },
    "postgres": {
        "0001_first": "eb77ef6794b4c6bfc142e9f209ec012f5458b64d3601a558a46236cba02c10b7",
        "0002_partitions": "9f49ecfb41d3570c8c848cfd10e7c9fffb972ee0731f6bf47294f43e9560bbec",
        "0003_spend_days": "5c8b67af9ecee70bfe0ad8962d869981a5bb8f9bf2259f2556296aef9af1002e",
    },
}
