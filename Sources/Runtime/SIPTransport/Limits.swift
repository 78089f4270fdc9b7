import Platform

// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Networks over all trunks.
  static let networks = 4_096
  /// Messages and connections a second of sources that no list names, where a trunk takes such: of one address, and of all.
  static let guestMessagesPerSource = 500
  static let guestMessagesPerSecond = 2_000
  /// Connections of one such address, and new ones of it in a second, before it has authenticated.
  static let connectionsPerGuest = 4
  static let guestConnectionsPerSecond = 10
  /// Without traffic, in all, and for how many messages a guest's connection stays open if it does not authenticate.
  static let guestIdleTime = Duration.seconds(30)
  static let guestTime = Duration.seconds(60)
  static let guestMessages = 20
  /// Datagrams taken from one socket in one turn, so that timers and other sockets are not starved.
  static let datagramsPerStep = 128
  /// How long a socket is left unread after a stranger's datagram: the shorter, the more of them come.
  static let pauseTime = Duration.milliseconds(1)...Duration.milliseconds(20)
  static let datagramBytes = 65_536
  /// Datagrams and bytes gathered for one `sendmmsg`.
  static let batchDatagrams = 64
  static let batchBytes = 262_144
  /// Entries read from a socket's error queue in one go.
  static let errorsPerStep = 64
  /// Kernel buffers of a UDP socket: 30 % loss of a burst starts with a full buffer.
  static let socketBufferBytes: Int32 = 1 << 20
  static let connections = 1_024
  static let connectionsPerTrunk = 64
  /// Room for what is read and deciphered, and how much is read from one connection in one turn: some forty messages, so that a peer
  /// that sends without end delays the other sockets by a few milliseconds a turn.
  static let readBytes = 65_536
  static let readBytesPerStep = 16_384
  /// Bytes waiting to be written to one connection; beyond that it is closed as dead.
  static let waitingBytes = 524_288
  /// New connections accepted in one turn.
  static let acceptsPerStep = 32
  /// New connections in a second: of one address without and with TLS, and of all.
  static let connectionsPerSource = 128
  static let handshakesPerSource = 20
  static let connectionsPerSecond = 2_000
  /// Of a core, in a second, for accepting connections (most of which are then closed) and for TLS handshakes of those who connect.
  static let acceptTime = Duration.milliseconds(100)
  static let handshakeTimePerSecond = Duration.milliseconds(60)
  /// Share of `acceptTime` that is there again before a listener that was left alone is heard.
  static let acceptResumeShare = 0.1
  static let connectTime = Duration.seconds(10)
  /// From accept to the end of the TLS handshake; our own connections have `connectTime` for both.
  static let handshakeTime = Duration.seconds(10)
  /// Pings on connections that we made (RFC 5626 §4.4.1), and how long a peer that has answered one may take for the next.
  static let pingInterval = Duration.seconds(95)
  static let pongTime = Duration.seconds(10)
  /// From the first byte of a message to its last.
  static let messageTime = Duration.seconds(20)
  /// From accept to the first whole message.
  static let firstMessageTime = Duration.seconds(32)
  /// Longer than the longest call (4 h), whose BYE must find its connection; dead peers are found by TCP keep-alives.
  static let idleTime = Duration.seconds(5 * 3_600)
  /// A peer that vanished without a word is found after a minute and a quarter, also in the middle of a quiet call; one that no longer takes what
  /// it is sent, or a firewall that has forgotten the connection, in seconds: a caller waits for the next one to be made.
  static let patience = TCPSocket.Patience(unacknowledged: .seconds(6), idle: .seconds(60), interval: .seconds(15))
  /// Of a certificate that is for another name, how many of its names the log has, and how much of each.
  static let loggedNames = 3
  static let loggedNameBytes = 64
  /// How often the log names strangers, and connections refused for want of descriptors.
  static let logInterval = Duration.seconds(10)
  /// Remembered routes of wildcard listeners: as many as all trunks have servers that a call may try. Each is asked for each second, for the
  /// status of its trunk, and costs four system calls of the control thread. For how long, and how long that there is none.
  static let routes = 16_384
  static let routeTime = Duration.seconds(10)
  static let noRouteTime = Duration.seconds(2)
  /// Failures told in one turn.
  static let failuresPerStep = 1_024
}
