"""app_phone.py whose media breaks the rules. The first argument says how, the others are app_phone's.

dtls-garbage: ICE is honest, then every DTLS flight is noise that looks like records.
dtls-cut: every DTLS flight is cut in half.
midcall: an honest call, but beside every packet of audio there is junk from the same address: SRTP with a wrong tag, old packets again,
  RTCP, STUN without integrity, DTLS records, noise.
"""
import os, random, runpy, struct, sys
import aiortc.rtcdtlstransport as dtls

habit = sys.argv.pop(1)
chance = random.Random(7)
sent = []


def noise(length):
    return bytes(chance.randrange(256) for _ in range(length))


def records():
    body = noise(chance.randrange(1, 200))
    return struct.pack("!BHHIHH", chance.choice([20, 21, 22, 23]), 0xFEFD, chance.choice([0, 1]), 0, chance.randrange(9), chance.choice([len(body), 65535])) + body


async def bad_write(self):
    data = self._ssl.bio_read(1500) if habit == "dtls-cut" else records()
    if data:
        await self.transport._send(data[: len(data) // 2] if habit == "dtls-cut" else data)


def junk():
    kind = chance.randrange(6)
    if kind == 0:
        good = bytearray(chance.choice(sent))
        good[-1 - chance.randrange(min(len(good) - 1, 16))] ^= 1 + chance.randrange(255)
        return bytes(good)
    if kind == 1:
        return chance.choice(sent)
    if kind == 2:
        return struct.pack("!BBHI", 0x80, chance.choice([200, 201, 203]), 6, chance.randrange(2**32)) + noise(40)
    if kind == 3:
        return struct.pack("!HHI", chance.choice([1, 0x101]), 0, 0x2112A442) + noise(12)
    if kind == 4:
        return records()
    return noise(chance.randrange(1, 1400))


send_rtp = dtls.RTCDtlsTransport._send_rtp


async def noisy_send(self, data):
    if not hasattr(self, "spied"):
        self.spied, honest = True, self.transport._send

        async def spy(packet):
            sent.append(packet)
            del sent[:-50]
            await honest(packet)

        self.honest, self.transport._send = honest, spy
    await send_rtp(self, data)
    for _ in range(2):
        await self.honest(junk())


if habit == "midcall":
    dtls.RTCDtlsTransport._send_rtp = noisy_send
else:
    dtls.RTCDtlsTransport._write_ssl = bad_write
folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, folder)
runpy.run_path(os.path.join(folder, "app_phone.py"), run_name="__main__")
