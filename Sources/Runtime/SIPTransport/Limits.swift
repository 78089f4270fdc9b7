import TrunklinePlatform

// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Networks over all trunks.
  static let networks = 4_096
  /// Messages and connections per second of unlisted sources, where a trunk accepts any peer: of one address, and of all.
  static let guestMessagesPerSource = 500
  static let guestMessagesPerSecond = 2_000
  /// Connections of one such address, and new ones per second, before it has authenticated.
  static let connectionsPerGuest = 4
  static let guestConnectionsPerSecond = 10
  /// How long a guest's connection stays open without traffic and in all, and for how many messages, if it does not authenticate.
  static let guestIdleTime = Duration.seconds(30)
  static let guestTime = Duration.seconds(60)
  static let guestMessages = 20
  /// Datagrams read from one socket in one step, so that timers and other sockets are not starved.
  static let datagramsPerStep = 128
  /// How long a socket is left unread after an unlisted source's datagram: the more of them arrive, the shorter.
  static let pauseTime = Duration.milliseconds(1)...Duration.milliseconds(20)
  static let datagramBytes = 65_536
  /// Datagrams and bytes gathered for one `sendmmsg`.
  static let batchDatagrams = 64
  static let batchBytes = 262_144
  /// Entries read from a socket's error queue in one step.
  static let errorsPerStep = 64
  /// Kernel buffers of a UDP socket: 30 % loss of a burst starts with a full buffer.
  static let socketBufferBytes: Int32 = 1 << 20
  static let connections = 1_024
  static let connectionsPerTrunk = 64
  /// Size of the buffer for received and deciphered bytes, and how much is read from one connection in one step: some forty
  /// messages, so that a peer that sends continuously delays the other sockets by a few milliseconds per step.
  static let readBytes = 65_536
  static let readBytesPerStep = 16_384
  /// Bytes waiting to be written to one connection; beyond that it is closed as dead.
  static let waitingBytes = 524_288
  /// New connections accepted in one step.
  static let acceptsPerStep = 32
  /// New connections per second: of one address without and with TLS, and of all.
  static let connectionsPerSource = 128
  static let handshakesPerSource = 20
  static let connectionsPerSecond = 2_000
  /// CPU time per second of one core for accepting connections (most of which are then closed) and for TLS handshakes of clients.
  static let acceptTime = Duration.milliseconds(100)
  static let handshakeTimePerSecond = Duration.milliseconds(60)
  /// Share of `acceptTime` that must be available again before a paused listener accepts connections.
  static let acceptResumeShare = 0.1
  static let connectTime = Duration.seconds(10)
  /// From accept to the end of the TLS handshake; our own connections have `connectTime` for both.
  static let handshakeTime = Duration.seconds(10)
  /// Interval of pings on connections that we made (RFC 5626 §4.4.1), and how long a peer that has answered one has for the next.
  static let pingInterval = Duration.seconds(95)
  static let pongTime = Duration.seconds(10)
  /// From the first byte of a message to its last.
  static let messageTime = Duration.seconds(20)
  /// From accept to the first whole message.
  static let firstMessageTime = Duration.seconds(32)
  /// Longer than the longest call (4 h), whose BYE must find its connection; dead peers are found by TCP keep-alives.
  static let idleTime = Duration.seconds(5 * 3_600)
  /// A peer that vanished silently is detected after 75 s, also in the middle of a quiet call; a peer that no longer acknowledges
  /// data, or a firewall that dropped the connection, within seconds: a caller waits for the next connection.
  static let patience = TCPSocket.Patience(unacknowledged: .seconds(6), idle: .seconds(60), interval: .seconds(15))
  /// How many names of a wrong certificate are logged, and how many bytes of each.
  static let loggedNames = 3
  static let loggedNameBytes = 64
  /// How often the log names unlisted sources, and connections refused for want of descriptors.
  static let logInterval = Duration.seconds(10)
  /// Remembered routes of wildcard listeners: as many as all trunks have servers that a call may try. Each is used every second,
  /// for the status of its trunk; a look-up costs four system calls of the control thread. Then: how long a route is remembered,
  /// and how long the lack of one.
  static let routes = 16_384
  static let routeTime = Duration.seconds(10)
  static let noRouteTime = Duration.seconds(2)
  /// Failures reported in one step.
  static let failuresPerStep = 1_024
}
