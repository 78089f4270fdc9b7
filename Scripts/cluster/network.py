"""A network of the cluster's own: one namespace for shared_store, edges, carrier and apps, one more for each node, and what cuts a node off.

The caller runs inside the first one (`enter`). Nothing of the machine's own network is touched, and all of it goes with its last process."""
import os, shutil, subprocess, sys

from programs import Failure, require, until

# Of the namespace that all but the nodes are in.
ENGINE, EDGE, BALANCER, CARRIER, APPS = "10.77.0.1", "10.77.0.9", "10.77.0.8", "10.77.0.2", "10.77.0.20"
INSIDE = "TRUNKLINE_FAULTS_NETWORK"


def enter():
    """Runs this program again in a namespace of its own, unless it is in it."""
    if os.environ.get(INSIDE):
        return
    ways = [["unshare", "--net"], ["unshare", "--map-root-user", "--net"]]
    way = next((way for way in ways if subprocess.run(way + ["true"], stderr=subprocess.DEVNULL).returncode == 0), None)
    if way is None:
        raise Failure("no network namespaces here: run it as root")
    os.environ[INSIDE] = "1"
    os.execvp(way[0], way + [sys.executable, "-B"] + sys.argv)


class Network:
    def __init__(self):
        self.tools = require("ip", "nft", "unshare", "nsenter")
        self.holders = []
        for line in ("link set lo up", "link add hub type bridge", "link set hub up"):
            self.ip(line)
        for address in (ENGINE, EDGE, BALANCER, CARRIER, APPS):
            self.ip(f"addr add {address}/24 dev hub")

    def ip(self, line, *before):
        self.run(*before, self.tools["ip"], *line.split())

    @staticmethod
    def run(*command, text=None):
        made = subprocess.run(command, input=text, capture_output=True, text=True)
        if made.returncode:
            raise Failure(f"{' '.join(command)}: {made.stderr.strip()}")

    def namespace(self, name, address):
        """A network of its own for a node; gives what stands before a command that runs in it."""
        # it holds the namespace until it is ended
        holder = subprocess.Popen([self.tools["unshare"], "--net", shutil.which("sleep"), "infinity"], start_new_session=True)
        self.holders.append(holder)
        mine = os.readlink("/proc/self/ns/net")
        until(5, f"a namespace for {name}", lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != mine)
        inside = [self.tools["nsenter"], f"--net=/proc/{holder.pid}/ns/net"]
        self.ip(f"link add {name} type veth peer name eth0 netns {holder.pid}")
        self.ip(f"link set {name} master hub up")
        for line in ("link set lo up", f"addr add {address}/24 dev eth0", "link set eth0 up"):
            self.ip(line, *inside)
        return inside

    def cut(self, inside, *addresses):
        """Everything between this node and the addresses is dropped, without a word; without addresses everything."""
        def rule(side, interface):
            return f"ip {side} {{ {', '.join(addresses)} }} drop" if addresses else f'{interface} != "lo" drop'
        self.run(*inside, self.tools["nft"], "-f", "-", text=f"""table inet cut {{
            chain in {{ type filter hook input priority 0; {rule('saddr', 'iifname')}; }}
            chain out {{ type filter hook output priority 0; {rule('daddr', 'oifname')}; }}
        }}""")

    def mend(self, inside):
        self.run(*inside, self.tools["nft"], "delete", "table", "inet", "cut")

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()
