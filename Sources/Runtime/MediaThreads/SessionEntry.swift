import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform

/// A session with the thread's data about it. Lives behind a pointer in the thread's table.
struct SessionEntry: ~Copyable {
  /// Descriptors of `sockets`, which are one more object away.
  private(set) var trunk: Int32, control: Int32
  /// The slots of each direction's ticks on the thread's `TickWheel`.
  var tickSlots: TickSlots
  var session: MediaSession
  /// Its group's mixer and its index there; nil outside of groups. The thread's table owns the mixer, and frees it after the last
  /// member has left.
  var group: (id: MediaGroupID, mixer: UnsafeMutablePointer<GroupMixer>, member: Int)?
  private var sockets: TrunkSockets
  /// The number of sessions that the thread had opened before.
  let serial: UInt64
  /// It has audio: it counts in the load.
  var isRunning = false
  var ufrags: [UfragKey] = []
  var addresses: [(route: Int32, address: SocketAddress)] = []
  /// At most one of each leg.
  var sources: [(leg: AppLegID, ssrc: UInt32)] = []
  var counted = MediaStatistics()

  init(_ session: consuming MediaSession, _ sockets: TrunkSockets, serial: UInt64, tickSlots: TickSlots) {
    self.serial = serial
    (trunk, control) = (sockets.rtp.fd, sockets.rtcp.fd)
    self.session = session
    self.sockets = sockets
    self.tickSlots = tickSlots
  }

  /// Moves the trunk leg to other sockets; the old ones are closed.
  mutating func move(to sockets: TrunkSockets) {
    trunk = sockets.rtp.fd
    control = sockets.rtcp.fd
    session.moveTrunk(to: PacketRoute(raw: trunk), control: PacketRoute(raw: control))
    self.sockets = sockets
  }
}

/// A local ufrag as a number: STUN finds its leg by it, and the leg's agent then checks name and integrity.
struct UfragKey: Hashable, Sendable {
  let hash: UInt64
  init(_ bytes: some Sequence<UInt8>) {
    hash = FNV1a(bytes).value
  }
}

/// An input of a media thread.
enum MediaWork: Sendable {
  case open(MediaSessionID, TrunkSockets)
  /// App legs use this socket, too.
  case listen(UDPSocket)
  /// No new session is offered the socket at this address: it is closed with the last one that was.
  case retire(IPAddress)
  /// The trunk leg of a session, whose address was removed, continues with these.
  case move(MediaSessionID, TrunkSockets)
  case command(MediaCommand)
  case handshake(HandshakeResult)
  case stop
}
