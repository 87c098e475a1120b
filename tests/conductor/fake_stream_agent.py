"""An agent without a model that takes prompts as lines of JSON: it writes each to a file, and ends when no more come.

It is called with a file that ends its first turn when it exists. Run as a program of its own.
"""

import json
import os
import sys
import time


def main() -> None:
    for turn, line in enumerate(sys.stdin, 1):
        (part,) = json.loads(line)["message"]["content"]
        with open("said.txt", "a", encoding="utf-8") as file:
            file.write(f"{part['text'].splitlines()[0]}\n")
        print(json.dumps({"type": "text", "text": f"turn {turn}"}), flush=True)
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        print(json.dumps({"type": "result"}), flush=True)


if __name__ == "__main__":
    main()
