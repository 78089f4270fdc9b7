"""Headless Chromium with a page and its service worker behind a pipe: JSON commands on stdin, JSON answers on stdout.

{"id": 1, "open": URL} opens the page, {"id": 1, "close": true} closes it; {"id": 1, "page": JS} and {"id": 1, "worker": JS} evaluate there;
{"id": 1, "push": {…}, "origin": URL} is a push from the browser's service, by DevTools. Ends, with the browser, when stdin does.
"""
import argparse, json, shutil, sys, tempfile, threading, time, urllib.request
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from browser_phone import debugging_port, end_group, say, start_browser


class Browser:
    def __init__(self, socket):
        self.socket, self.number, self.answers, self.news = socket, 0, {}, threading.Condition()
        self.registrations, self.page = {}, None
        threading.Thread(target=self.listen, daemon=True).start()
        self.control = self.attach(self.call("Target.createTarget", url="about:blank")["targetId"])
        self.call("ServiceWorker.enable", session=self.control)

    def listen(self):
        try:
            for text in self.socket:
                message = json.loads(text)
                with self.news:
                    if "id" in message:
                        self.answers[message["id"]] = message
                    elif message["method"] == "ServiceWorker.workerRegistrationUpdated":
                        for one in message["params"]["registrations"]:
                            self.registrations[one["scopeURL"]] = one["registrationId"]
                    self.news.notify_all()
        except ConnectionClosed:
            pass

    def call(self, method, session=None, **params):
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}))
        with self.news:
            if not self.news.wait_for(lambda: number in self.answers, timeout=20):
                raise RuntimeError(f"no answer to {method}")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def attach(self, target):
        return self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def evaluate(self, session, script):
        result = self.call("Runtime.evaluate", session=session, expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"].get("exception", {}).get("description", result["exceptionDetails"])))
        return result["result"].get("value")

    def open(self, url):
        origin = "/".join(url.split("/")[:3])
        self.call("Browser.grantPermissions", origin=origin, permissions=["notifications", "audioCapture"])
        self.target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.page = self.attach(self.target)
        # what records its audio is a script of the test (PageRecorder.swift)
        self.call("Page.setBypassCSP", session=self.page, enabled=True)
        self.call("Page.navigate", session=self.page, url=url)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                if self.evaluate(self.page, "document.readyState === 'complete' && location.protocol.startsWith('http')"):
                    return
            except RuntimeError:
                pass  # between two documents there is no context
            time.sleep(0.02)
        raise RuntimeError(f"{url} did not load")

    def worker(self, script):
        found = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "service_worker"]
        if not found:
            raise RuntimeError("no service worker runs")
        session = self.attach(found[0]["targetId"])
        try:
            return self.evaluate(session, script)
        finally:
            self.call("Target.detachFromTarget", sessionId=session)

    def push(self, origin, data):
        scope = origin + "/"
        with self.news:
            if not self.news.wait_for(lambda: scope in self.registrations, timeout=10):
                raise RuntimeError(f"no registration of {scope}")
        self.call("ServiceWorker.deliverPushMessage", session=self.control, origin=origin, registrationId=self.registrations[scope],
                  data=data if isinstance(data, str) else json.dumps(data))

    def do(self, command):
        if "open" in command: return self.open(command["open"])
        if "close" in command: return self.call("Target.closeTarget", targetId=self.target) and None
        if "page" in command: return self.evaluate(self.page, command["page"])
        if "worker" in command: return self.worker(command["worker"])
        if "push" in command: return self.push(command["origin"], command["push"])
        raise RuntimeError("no such command")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--play", metavar="WAV")
    options = parser.parse_args()
    options.loop = True
    profile = tempfile.mkdtemp(prefix="trunkline-chromium-")
    chromium = start_browser(options, profile)
    try:
        version = json.load(urllib.request.urlopen(f"http://127.0.0.1:{debugging_port(chromium)}/json/version", timeout=20))
        with connect(version["webSocketDebuggerUrl"], max_size=64 << 20) as socket:
            browser = Browser(socket)
            say("ready")
            for line in sys.stdin:
                command = json.loads(line)
                try:
                    say("answer", id=command["id"], value=browser.do(command))
                except (RuntimeError, ConnectionClosed) as error:
                    say("answer", id=command["id"], error=str(error))
    finally:
        end_group(chromium)
        shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    main()
