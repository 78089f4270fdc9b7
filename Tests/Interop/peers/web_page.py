"""Headless Chromium behind a pipe: DevTools commands come as JSON lines on stdin, answers and dialogs go out as JSON lines.

{"id": 1, "method": "Runtime.evaluate", "params": {...}} → {"event": "answer", "id": 1, "result": {...}} (or "error").
{"id": 2, "shot": "page.png"} saves what is seen. Ends, with the browser, when stdin does.
"""
import argparse, base64, json, shutil, sys, tempfile, threading
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from browser_phone import debugger_url, debugging_port, end_group, say, start_browser


def listen(socket, shots):
    try:
        for text in socket:
            message = json.loads(text)
            if "id" not in message:
                if message["method"] == "Page.javascriptDialogOpening":
                    say("dialog", type=message["params"]["type"])
                continue
            result = message.get("result", {})
            if message["id"] in shots:
                open(shots.pop(message["id"]), "wb").write(base64.b64decode(result.pop("data", "")))
            say("answer", id=message["id"], result=result, **({"error": message["error"]} if "error" in message else {}))
    except ConnectionClosed:
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-microphone", action="store_true", help="no device at all")
    parser.add_argument("--asks", action="store_true", help="the page has no permission by itself")
    options = parser.parse_args()
    profile = tempfile.mkdtemp(prefix="trunkline-chromium-")
    leave_out = (["--use-fake-device-for-media-stream"] if options.no_microphone else []) + (
        ["--use-fake-ui-for-media-stream"] if options.asks else [])
    browser = start_browser(argparse.Namespace(play=None, loop=False), profile, leave_out)
    try:
        with connect(debugger_url(debugging_port(browser)), max_size=64 << 20) as socket:
            shots = {}
            threading.Thread(target=listen, args=(socket, shots), daemon=True).start()
            say("ready")
            for line in sys.stdin:
                command = json.loads(line)
                if path := command.pop("shot", None):
                    shots[command["id"]] = path
                    command["method"] = "Page.captureScreenshot"
                socket.send(json.dumps(command))
    finally:
        end_group(browser)
        shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    main()
