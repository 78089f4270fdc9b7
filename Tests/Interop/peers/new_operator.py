"""A new operator, who has the package and the pages alone: for each carrier of docs/operate/carriers.md its configuration as the page has it,
`serve --check`, `serve`, `trunks show`, an app, a call each way. The gateway runs in a chroot without the sources, behind 1:1 NAT; the
carrier is Asterisk in the world outside, at addresses that the carrier really has.

    new_operator.py ROOT ASTERISK FOLDER [PROFILE …]

ROOT: a Debian with /usr/bin/trunkline and trunkline-lab. ASTERISK: a Debian with Asterisk. FOLDER gets the transcript and what was heard,
PROFILE-app.wav and PROFILE-carrier.wav; what is said are its said-by-app.wav and said-by-carrier.wav, else a tone. Needs root, ip and nft. Runs in network
namespaces of its own; ends with 1 if a command fails."""

import ctypes, json, math, os, re, shutil, signal, socket, struct, subprocess, sys, threading, time, wave

root, asterisk_root, folder = sys.argv[1:4]
docs = os.path.join(os.path.dirname(__file__), "../../../docs")
OUTSIDE, WORLD, CONFIG = "203.0.113.5", "203.0.113.1", "/etc/trunkline/trunkline.yaml"
INSIDE, ROUTER, OPEN = f"tlo{os.getpid()}in", f"tlo{os.getpid()}nat", f"tlo{os.getpid()}out"
NUMBER = "+4930123456"

# Where the carrier's SIP and RTP come from, its port and transport, lines of its endpoint, how it writes our number; `registers`: the
# address of record; `contact`: where its calls go else.
CARRIERS = {
    "twilio": dict(sip="54.172.60.1", media="168.86.128.9", codec="ulaw"),
    "telnyx": dict(sip="192.76.120.10", codec="ulaw", registers="example", challenges="example"),
    "sipgate": dict(sip="217.10.68.150", codec="alaw", registers="1234567t0", challenges="1234567t0", number="4930123456"),
    "telekom": dict(sip="217.0.128.1", codec="alaw", transport="tcp", registers="+4930123456", challenges="example@tel.t-online.de"),
    "plivo": dict(sip="192.0.2.9", codec="ulaw", challenges="example"),
    "asterisk": dict(sip="10.9.0.2", codec="opus", inside=True),
    "teams": dict(sip="52.114.132.46", codec="alaw", transport="tls", port=5061),
    "whatsapp": dict(sip="157.240.1.1", codec="opus", transport="tls", port=5061, challenges="15551230001", answers=True),
}
transcript = open(f"{folder}/transcript.txt", "w")
children = []


def sh(command, ns=None, **more):
    return subprocess.run(([] if ns is None else ["ip", "netns", "exec", ns]) + ["sh", "-ec", command], text=True, capture_output=True, **more)


def must(command, ns=None):
    done = sh(command, ns)
    if done.returncode:
        sys.exit(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def inside(words):
    return ["ip", "netns", "exec", INSIDE, "chroot", root, "env", "-C", "/etc/trunkline", "-i", "PATH=/usr/bin:/bin", "HOME=/root"] + words


def typed(words, within=20):
    """A command that the operator types in the chroot; what it prints."""
    done = subprocess.run(inside(words), text=True, capture_output=True, timeout=within)
    transcript.write(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}")
    if done.returncode:
        sys.exit(f"{' '.join(words)}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def started(words, log, **more):
    out = open(log, "w")
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **more)
    children.append(child)
    return child


def eventually(what, condition, within=20):
    end = time.monotonic() + within
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    sys.exit(f"{what}: not within {within} s\n{read(f'{folder}/serve.log')[-4000:]}\n{read(f'{folder}/asterisk.log')[-3000:]}")


def read(path):
    return open(path, errors="replace").read() if os.path.exists(path) else ""


def networks():
    must(f"""
      ip netns add {INSIDE}; ip netns add {ROUTER}; ip netns add {OPEN}
      for name in {INSIDE} {ROUTER} {OPEN}; do ip -n $name link set lo up; done
      ip -n {ROUTER} link add world type veth peer name eth0 netns {OPEN}
      ip -n {OPEN} addr add {WORLD}/24 dev eth0; ip -n {OPEN} link set eth0 up
      ip -n {ROUTER} addr add {OUTSIDE}/24 dev world; ip -n {ROUTER} link set world up; ip -n {ROUTER} route add default via {WORLD}
      ip -n {ROUTER} link add lan type veth peer name eth0 netns {INSIDE}
      ip -n {ROUTER} addr add 10.9.0.1/24 dev lan; ip -n {ROUTER} addr add 10.9.0.2/24 dev lan; ip -n {ROUTER} link set lan up
      ip -n {ROUTER} route replace 10.9.0.0/24 dev lan src 10.9.0.2
      ip -n {INSIDE} addr add 10.9.0.5/24 dev eth0; ip -n {INSIDE} link set eth0 up; ip -n {INSIDE} route add default via 10.9.0.1
      ip netns exec {ROUTER} sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'""")
    for row in CARRIERS.values():
        for address in {row["sip"], row.get("media")} - {None}:
            if not row.get("inside"):
                must(f"ip -n {OPEN} addr add {address}/32 dev lo")
    rules = f"""table ip nat {{
      chain in {{ type nat hook prerouting priority dstnat; ip daddr {OUTSIDE} dnat to 10.9.0.5; }}
      chain out {{ type nat hook postrouting priority srcnat; oif "world" ip saddr 10.9.0.5 snat to {OUTSIDE}; }}
    }}"""
    subprocess.run(["ip", "netns", "exec", ROUTER, "nft", "-f", "-"], input=rules, text=True, check=True)


def name_server(address):
    """Every name has the carrier's address; no NAPTR, no SRV, no AAAA."""
    network = os.open(f"/run/netns/{OPEN}", os.O_RDONLY)
    ctypes.CDLL(None).setns(network, 0)  # of this thread alone
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((WORLD, 53))
    while True:
        question, peer = server.recvfrom(512)
        end = question.index(0, 12) + 5
        is_address = question[end - 4:end - 2] == b"\0\1"
        head = question[:2] + struct.pack(">HHHHH", 0x8580, 1, int(is_address), 0, 0)
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(address[0]) if is_address else b""
        server.sendto(head + question[12:end] + answer, peer)


def speech():
    for name in ("said-by-app", "said-by-carrier"):
        if not os.path.exists(f"{folder}/{name}.wav"):
            with wave.open(f"{folder}/{name}.wav", "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", ""))
                file.writeframes(b"".join(struct.pack("<h", int(8000 * math.sin(0.345 * at))) for at in range(16000)))
    shutil.copy(f"{folder}/said-by-app.wav", f"{root}/tmp/said-by-app.wav")


def certificates():
    """The world's authority, which the chroot trusts, and what it signed for the carrier and for us."""
    names = ", ".join(f"DNS:{name}" for name in ["sip.pstnhub.microsoft.com", "wa.meta.vc", "sbc.example.com"])
    must(f"""cd {folder}
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=World -keyout ca.key -out ca.pem
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=sbc.example.com -keyout sip.key -out sip.csr
      printf 'subjectAltName={names}\\n' >extensions
      openssl x509 -req -in sip.csr -CA ca.pem -CAkey ca.key -days 20 -out sip.pem -extfile extensions
      cp sip.pem sip.key {root}/etc/trunkline/
      mkdir -p {root}/usr/local/share/ca-certificates; cp ca.pem {root}/usr/local/share/ca-certificates/world.crt
      chroot {root} update-ca-certificates""")


def sample(profile):
    """The page's configuration and, if it has one, its file of the other side."""
    page = read(f"{docs}/operate/carriers.md")
    for block in re.findall(r"```yaml\n(.*?)```", page, re.S):
        if f"profile: {profile}" in block:
            before = page[:page.index(block)]
            section = before[before.rindex("\n## "):]
            others = re.findall(r"```\n(.*?)```", section, re.S)
            return block, others[-1] if others else None
    sys.exit(f"docs/operate/carriers.md has no sample with profile: {profile}")


def configure(profile, carrier):
    """The page's sample, and beside it what every operator has: users, routes, and the address outside."""
    text, theirs = sample(profile)
    trunk = re.search(r"name: (\w+)", text)[1]
    lines = [text]
    if "listen:" not in text:
        told = "" if carrier.get("inside") else f", advertise: {OUTSIDE}"
        ports = ", ".join(f"{kind}: {{ address: 0.0.0.0:5060{told} }}" for kind in ("udp", "tcp"))
        lines.append(f"listen: {{ sip: {{ {ports} }} }}\n")
    lines.append(f"media: {{ addresses: [ {{ bind: auto, advertise: {OUTSIDE} }} ] }}\n")
    lines.append(f"users: [ {{ id: alice, numbers: [ \"{NUMBER}\" ], country: \"49\" }} ]\n")
    lines.append(f"routes: {{ inbound: [ {{ trunk: {trunk}, to: users }} ], outbound: [ {{ prefix: \"+\", trunk: {trunk} }} ] }}\n")
    lines.append("store: { sqlite: /var/lib/trunkline/trunkline.db }\nrecords: { file: /var/lib/trunkline/calls.jsonl }\n")
    with open(root + CONFIG, "w") as file:
        file.write("".join(lines))
    for name in re.findall(r"password_file: (\S+)", text):
        with open(f"{root}/etc/trunkline/{name.strip(',} ')}", "w") as file:
            file.write("s3cret\n")
    for name in ("calls.jsonl", "trunkline.db", "trunkline.db.started"):
        if os.path.exists(f"{root}/var/lib/trunkline/{name}"):
            os.remove(f"{root}/var/lib/trunkline/{name}")
    transcript.write(f"\n==== {profile}\n{''.join(lines)}")
    return trunk, theirs


def asterisk_files(carrier, theirs):
    port, kind = carrier.get("port", 5060), carrier.get("transport", "udp")
    tls = "cert_file=/run/operator/sip.pem\npriv_key_file=/run/operator/sip.key\nmethod=tlsv1_2\n" if kind == "tls" else ""
    transport = f"[transport-main]\ntype=transport\nprotocol={kind}\nbind={carrier['sip']}:{port}\n{tls}"
    if theirs:  # as the page has it, for the PBX's own side
        return transport + theirs
    aor = carrier.get("registers", "trunk")
    target = f"sip:{OUTSIDE}:{5061 if kind == 'tls' else 5060}" + (f";transport={kind}" if kind != "udp" else "")
    rows = [
        "[trunk]", "type=endpoint", "context=calls", "transport=transport-main", "disallow=all", f"allow={carrier['codec']}",
        f"aors={aor}", "direct_media=no", f"media_address={carrier.get('media', carrier['sip'])}", "bind_rtp_to_media_address=yes",
    ]
    rows += ["media_encryption=sdes"] if kind == "tls" else []
    rows += ["auth=auth"] if "challenges" in carrier else []
    rows += ["outbound_auth=auth"] if "answers" in carrier else []
    rows += [f"[{aor}]", "type=aor", "max_contacts=1" if "registers" in carrier else f"contact={target}"]
    rows += ["[trunk]", "type=identify", "endpoint=trunk", f"match={OUTSIDE}"]
    rows += ["[auth]", "type=auth", "auth_type=userpass", f"username={carrier.get('challenges', 'x')}", "password=s3cret"]
    return transport + "\n".join(rows) + "\n"


class Asterisk:
    def __init__(self, carrier, theirs):
        self.ns = ROUTER if carrier.get("inside") else OPEN
        self.home = asterisk_root + "/run/operator"
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(self.home)
        for name in ("sip.pem", "sip.key"):
            shutil.copy(f"{folder}/{name}", self.home)
        shutil.copy(f"{folder}/said-by-carrier.wav", self.home)
        # else it waits for a name server, for each call, to learn its own address
        with open(f"{asterisk_root}/etc/hosts", "w") as file:
            file.write(f"127.0.0.1 localhost {socket.gethostname()} A.ROOT-SERVERS.NET\n{OUTSIDE} sbc.example.com\n")
        modules = must(f"cd {asterisk_root}; ls -d usr/lib/*/asterisk/modules").split()[0]
        keys = ["astetcdir", "astdbdir", "astspooldir", "astrundir", "astlogdir", "astkeydir", "astagidir"]
        own = "".join(f"{key} => /run/operator\n" for key in keys)
        unused = ["chan_iax2", "chan_unistim", "pbx_dundi", "res_xmpp", "cdr_sqlite3_custom", "pbx_ael", "pbx_lua"]
        answer = (
            "exten => _[+0-9]!,1,Answer()\n same => n,MixMonitor(/run/operator/mixed.wav,r(/run/operator/heard.wav))\n"
            " same => n,Playback(/run/operator/said-by-carrier)\n same => n,Wait(1)\n same => n,Hangup()\n")
        for name, text in {
            "asterisk.conf": f"[directories]\n{own}astmoddir => /{modules}\nastvarlibdir => /var/lib/asterisk\n"
                             "astdatadir => /usr/share/asterisk\n[options]\nverbose = 3\n",
            "modules.conf": "[modules]\nautoload = yes\n" + "".join(f"noload = {name}.so\n" for name in unused),
            "logger.conf": "[logfiles]\nfull => notice,warning,error,verbose\n",
            "rtp.conf": "[general]\nrtpstart=30000\nrtpend=30999\n",
            "extensions.conf": f"[calls]\n{answer}[from-apps]\n{answer}",
            "pjsip.conf": asterisk_files(carrier, theirs),
        }.items():
            with open(f"{self.home}/{name}", "w") as file:
                file.write(text)
        self.process = started(
            ["ip", "netns", "exec", self.ns, "chroot", asterisk_root, "/usr/sbin/asterisk", "-f", "-n", "-C", "/run/operator/asterisk.conf"],
            f"{folder}/asterisk.log")
        eventually("Asterisk", lambda: "fully booted" in self.said("core waitfullybooted"), 40)

    def said(self, command):
        return subprocess.run(
            ["chroot", asterisk_root, "/usr/sbin/asterisk", "-C", "/run/operator/asterisk.conf", "-rx", command], text=True,
            stdin=subprocess.DEVNULL, capture_output=True).stdout

    def stop(self):
        self.said("core stop now")
        self.process.wait(15)
        shutil.copy(f"{self.home}/full", f"{folder}/asterisk-full.log")
        shutil.rmtree(self.home)


def phone(token, words):
    child = started(
        inside(["trunkline-lab", "phone", "--token", token, "--device", "laptop", "--events", "--play", "/tmp/said-by-app.wav"] + words),
        f"{folder}/phone.log")
    eventually("the app logs in", lambda: '"online"' in read(f"{folder}/phone.log"))
    return child


def end_of(child, profile, carrier, what):
    try:
        status = child.wait(40)
    except subprocess.TimeoutExpired:
        status = "none in 40 s"
    if status != 0:
        sys.exit(f"{profile}, {what}: status {status}\n{read(f'{folder}/phone.log')}\n{read(f'{folder}/serve.log')[-5000:]}\n{carrier.said('pjsip show endpoints')}"
                 f"\n{read(carrier.home + '/full')[-4000:]}")


def visit(profile, address):
    carrier = CARRIERS[profile]
    address[0] = carrier["sip"]
    trunk, theirs = configure(profile, carrier)
    other = Asterisk(carrier, theirs)
    typed(["trunkline", "serve", "--check", "--config", CONFIG])
    gateway = started(inside(["trunkline", "serve", "--config", CONFIG]), f"{folder}/serve.log")
    eventually(f"{profile}: trunkline health", lambda: subprocess.run(inside(["trunkline", "health"]), capture_output=True).returncode == 0)
    if "registers" in carrier:
        eventually(f"{profile}: registered", lambda: "registered" in read(f"{folder}/serve.log") and OUTSIDE in other.said("pjsip show contacts"))
    eventually(f"{profile}: trunks show", lambda: " UP" in subprocess.run(inside(["trunkline", "trunks", "show", trunk]), text=True, capture_output=True).stdout.upper())
    typed(["trunkline", "trunks", "show", trunk])
    token = typed(["trunkline", "token", "--user", "alice", "--device", "laptop", "--config", CONFIG]).strip()

    app = phone(token, ["--answer", "--calls", "1", "--record", "/tmp/heard.wav"])
    endpoint = "trunkline" if theirs else "trunk"
    other.said(f"channel originate PJSIP/{carrier.get('number', NUMBER)}@{endpoint} extension 1000@calls")
    end_of(app, profile, other, "the carrier calls")
    shutil.copy(f"{root}/tmp/heard.wav", f"{folder}/{profile}-app.wav")

    os.remove(f"{other.home}/heard.wav")
    app = phone(token, ["--call", "030999001"])
    end_of(app, profile, other, "the app calls")
    calls = [json.loads(line) for line in typed(["tail", "-2", "/var/lib/trunkline/calls.jsonl"]).splitlines()]
    last = calls[-1]
    if [call["end"]["reason"] for call in calls] != ["remoteHangup"] * 2 or last["direction"] != "out" or last["to"] != "+4930999001":
        sys.exit(f"{profile}: {calls}")
    if (carrier.get("transport") == "tls") != ("trunkSrtp" in last):
        sys.exit(f"{profile}: SRTP on the trunk: {last}")
    gateway.send_signal(signal.SIGTERM)
    if gateway.wait(20) != 0:
        sys.exit(f"{profile}: serve ended with {gateway.returncode}\n{read(f'{folder}/serve.log')[-3000:]}")
    shutil.copy(f"{other.home}/heard.wav", f"{folder}/{profile}-carrier.wav")
    other.stop()
    print(f"{time.monotonic():.1f} {profile}: a call each way", flush=True)


def main():
    address = [WORLD]
    try:
        networks()
        certificates()
        speech()
        with open(f"{root}/etc/resolv.conf", "w") as file:
            file.write(f"nameserver {WORLD}\n")
        threading.Thread(target=name_server, args=[address], daemon=True).start()
        for profile in sys.argv[4:] or CARRIERS:
            visit(profile, address)
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
        for name in (INSIDE, ROUTER, OPEN):
            sh(f"ip netns del {name}")
        shutil.rmtree(asterisk_root + "/run/operator", ignore_errors=True)


main()
