"""PJSIP (pjsua2) as a telephone or a PBX's stack: calls or is called, and does by the clock of its call what --do says.

    pjsip_phone.py --port 5080 --call 'sip:+15551230001@127.0.0.1:5060' --do 'hold@2 resume@4 digits:42#@5 end@8'

Plays --play from the first media on and writes what it hears into --record. Prints one JSON object a line; ends after --calls calls.
"""
import argparse, json, os, sys, threading, time
import pjsua2 as pj

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--media", type=int, default=0, help="first RTP port; 0: any")
parser.add_argument("--transport", choices=["udp", "tcp"], default="udp")
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--number", default="+15559990001")
parser.add_argument("--registrar", default="", help="sip:… to register with")
parser.add_argument("--user", default="")
parser.add_argument("--password", default="")
parser.add_argument("--call", default="", help="a URI; without one it waits to be called")
parser.add_argument("--codecs", default="PCMU PCMA", help="in this order, and no others")
parser.add_argument("--play", default="")
parser.add_argument("--record", default="")
parser.add_argument("--do", default="", help="hold@2 resume@4 digits:12#@5 update@6 reinvite@6 refer:sip:…@7 end@8, seconds since the call is confirmed")
parser.add_argument("--calls", type=int, default=1)
parser.add_argument("--seconds", type=float, default=60)
options = parser.parse_args()
ended = threading.Event()
left = options.calls


def say(event, **more):
    print(json.dumps({"event": event, "at": int(time.time() * 1000), **more}), flush=True)


class Call(pj.Call):
    made = 0
    player = recorder = None
    plan = ()
    confirmed = None

    def __init__(self, *arguments):
        super().__init__(*arguments)
        Call.made += 1
        self.number = Call.made

    def onCallState(self, _):
        info = self.getInfo()
        say("state", state=info.stateText, code=info.lastStatusCode)
        if info.state == pj.PJSIP_INV_STATE_CONFIRMED and self.confirmed is None:
            self.confirmed = time.monotonic()
            say("confirmed", call=self.number)
            # of the first call alone: what a transfer brings is only answered
            steps = [step.rpartition("@") for step in options.do.split()] if self.number == 1 else []
            self.plan = [(float(at), what) for what, _, at in steps]
        if info.state == pj.PJSIP_INV_STATE_DISCONNECTED:
            global left
            say("over", call=self.number, code=info.lastStatusCode, reason=info.lastReason)
            left -= 1
            calls.remove(self)
            if left == 0:
                ended.set()

    def onCallMediaState(self, _):
        try:
            self.hear()
        except Exception as error:  # the library swallows it
            say("fault", error=repr(error))

    def hear(self):
        info = self.getInfo()  # its list is gone with it
        for index, media in enumerate(info.media):
            if media.type != pj.PJMEDIA_TYPE_AUDIO:
                continue
            say("media", status=media.status, direction=media.dir)
            if media.status not in (pj.PJSUA_CALL_MEDIA_ACTIVE, pj.PJSUA_CALL_MEDIA_REMOTE_HOLD):
                continue
            audio = self.getAudioMedia(index)
            if options.record and self.recorder is None and self.number == 1:
                self.recorder = pj.AudioMediaRecorder()
                self.recorder.createRecorder(options.record)
            if self.recorder:
                audio.startTransmit(self.recorder)
            if options.play and self.player is None:
                self.player = pj.AudioMediaPlayer()
                self.player.createPlayer(options.play, pj.PJMEDIA_FILE_NO_LOOP)
            if self.player and media.status == pj.PJSUA_CALL_MEDIA_ACTIVE:
                self.player.startTransmit(audio)

    def onDtmfDigit(self, it):
        say("digit", digit=it.digit)

    def onCallTransferStatus(self, it):
        say("transfer", code=it.statusCode, final=it.finalNotify)
        if it.finalNotify and it.statusCode // 100 == 2:
            self.hangup(pj.CallOpParam(True))

    def onCallReplaced(self, it):
        say("replaced")

    def do(self, what):
        name, _, argument = what.partition(":")
        say("do", what=what)
        if name == "hold":
            self.setHold(pj.CallOpParam())
        elif name in ("resume", "reinvite", "update"):
            it = pj.CallOpParam(True)
            it.opt.flag = pj.PJSUA_CALL_UNHOLD if name == "resume" else 0
            self.update(it) if name == "update" else self.reinvite(it)
        elif name == "digits":
            self.dialDtmf(argument)
        elif name == "refer":
            self.xfer(argument, pj.CallOpParam(True))
        elif name == "end":
            self.hangup(pj.CallOpParam(True))
        else:
            sys.exit("no such step: " + what)

    def tick(self):
        while self.plan and time.monotonic() - self.confirmed >= self.plan[0][0]:
            what = self.plan.pop(0)[1]
            try:
                self.do(what)
            except pj.Error as error:
                say("refused", what=what, error=error.info())


class Account(pj.Account):
    def onIncomingCall(self, it):
        call = Call(self, it.callId)
        calls.append(call)
        say("incoming", sender=call.getInfo().remoteUri)
        ringing, answer = pj.CallOpParam(True), pj.CallOpParam(True)
        ringing.statusCode, answer.statusCode = 180, 200
        call.answer(ringing)
        call.answer(answer)

    def onRegState(self, it):
        say("registered", code=it.code)


calls = []
endpoint = pj.Endpoint()
endpoint.libCreate()
configuration = pj.EpConfig()
configuration.logConfig.level = configuration.logConfig.consoleLevel = 1
# the loop below is its only thread: callbacks and steps never meet
configuration.uaConfig.threadCnt = 0
configuration.uaConfig.mainThreadOnly = True
configuration.medConfig.hasIoqueue = True
configuration.medConfig.clockRate = 8000  # of the files, too
configuration.medConfig.noVad = True
configuration.medConfig.ecTailLen = 0
endpoint.libInit(configuration)
transport = pj.TransportConfig()
transport.port, transport.boundAddress, transport.publicAddress = options.port, options.address, options.address
kind = pj.PJSIP_TRANSPORT_TCP if options.transport == "tcp" else pj.PJSIP_TRANSPORT_UDP
endpoint.transportCreate(kind, transport)
endpoint.libStart()
endpoint.audDevManager().setNullDev()
wanted = options.codecs.split()
for codec in endpoint.codecEnum2():
    name = codec.codecId.split("/")[0]
    endpoint.codecSetPriority(codec.codecId, 250 - wanted.index(name) if name in wanted else 0)
mine = pj.AccountConfig()
suffix = ";transport=tcp" if options.transport == "tcp" else ""
mine.idUri = "sip:%s@%s:%d" % (options.number, options.address, options.port)
mine.mediaConfig.transportConfig.boundAddress = options.address
mine.mediaConfig.transportConfig.publicAddress = options.address
mine.mediaConfig.transportConfig.port = options.media
if options.registrar:
    mine.regConfig.registrarUri = options.registrar + suffix
    mine.sipConfig.authCreds.append(pj.AuthCredInfo("digest", "*", options.user, 0, options.password))
account = Account()
account.create(mine)
say("listening")
if options.call:
    call = Call(account)
    calls.append(call)
    call.makeCall(options.call + suffix, pj.CallOpParam(True))
end = time.monotonic() + options.seconds
while time.monotonic() < end and not ended.is_set():
    endpoint.libHandleEvents(20)
    for call in list(calls):
        call.tick()
# what is left to send: an ACK, an answer to a BYE that comes again
for _ in range(20):
    endpoint.libHandleEvents(20)
whole = ended.is_set()
say("done", whole=whole)
for call in calls:
    call.hangup(pj.CallOpParam(True))
# the recorders close their files; Python's own end would run destructors of a library that is gone
endpoint.libDestroy()
sys.stdout.flush()
os._exit(0 if whole else 1)
