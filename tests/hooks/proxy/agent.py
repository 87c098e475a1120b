"""An agent that does what a prompt says, step by step, for tests of what stands between it and an editor. Plain Python, alone.

A prompt's text is a list of steps in JSON: what to say word for word, what to ask the editor, how to end.
"""

import json
import os
import signal
import sys
import time

OUT = sys.stdout.buffer
# The session of the prompt that is being worked on.
NOW = {"session": "s1"}


def write(line):
    OUT.write(line)
    OUT.flush()


def say(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def update(told):
    say({"method": "session/update", "params": {"sessionId": NOW["session"], "update": told}})


def put(path, text):
    with open(path, "w") as file:
        file.write(text)


class Agent:
    def __init__(self):
        self.numbers = iter(range(1000))
        self.allowed = {}
        self.steps = {
            "say": lambda text, **more: update(
                {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}
            ),
            "think": lambda text: update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}),
            "update": update,
            "raw": lambda text: write(text.encode("latin-1")),
            "long": lambda size: say({"method": "session/update", "params": {"sessionId": NOW["session"], "big": "x" * size}}),
            "error": lambda text: print(text, file=sys.stderr, flush=True),
            "ask": self.ask,
            "request": self.request,
            "do": self.do,
            "put": put,
            "wait": time.sleep,
            "exit": sys.exit,
            "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        }

    def run(self):
        while line := sys.stdin.buffer.readline():
            try:
                message = json.loads(line)
            except ValueError:
                # Told back as it came, to show that it did.
                write(line)
                continue
            self.hear(message)

    def hear(self, message):
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            info = {"name": os.environ.get("AGENT_NAME", "stub"), "version": "7"}
            say({"id": number, "result": {"protocolVersion": 1, "agentInfo": info}})
        elif method in ("session/new", "session/load", "session/resume"):
            self.opened = message
            say(
                {
                    "id": number,
                    "result": {"sessionId": os.path.basename(message["params"]["cwd"]) if "SEVERAL" in os.environ else "s1"},
                }
            )
        elif method == "session/prompt":
            result = {"stopReason": "end_turn"}
            NOW["session"] = message["params"]["sessionId"]
            for name, *given in json.loads(message["params"]["prompt"][0]["text"]):
                if name == "result":
                    result = given[0]
                elif name == "told":
                    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": json.dumps(self.opened)}})
                else:
                    self.steps[name](*given)
            say({"id": number, "result": result})
        elif method == "parent":
            say({"id": number, "result": os.getppid()})
        elif method is not None and number is not None:
            say({"id": number, "result": {"echo": message}})

    def request(self, method, params):
        """Ask the editor for something, and say what came back."""
        number = next(self.numbers)
        say({"id": number, "method": method, "params": {"sessionId": NOW["session"], **params}})
        while True:
            answer = json.loads(sys.stdin.buffer.readline())
            if answer.get("id") == number and "method" not in answer:
                return answer

    def ask(self, call, options=(("y", "allow_once"), ("n", "reject_once"), ("a", "allow_always"))):
        told = [{"optionId": option, "kind": kind, "name": kind} for option, kind in options]
        answer = self.request("session/request_permission", {"toolCall": call, "options": told})
        outcome = answer.get("result", {}).get("outcome", {})
        self.allowed[call["toolCallId"]] = outcome.get("optionId") in ("y", "a")

    def do(self, call, path):
        """Do what was asked for, if it was allowed: make a file."""
        if self.allowed.get(call):
            with open(path, "w"):
                pass
        update(
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": call,
                "status": "completed" if self.allowed.get(call) else "failed",
            }
        )


if __name__ == "__main__":
    Agent().run()
