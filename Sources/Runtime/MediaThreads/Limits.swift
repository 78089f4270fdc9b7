// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Media threads of one process.
  static let threads = 64
  /// Calls on one media thread; further reservations are refused.
  static let sessionsPerThread = 4_096
  /// Addresses of app legs that one thread tells apart.
  static let appAddresses = 16_384
  /// Addresses of one leg kept in the table; older ones leave it.
  static let addressesPerSession = 32
  /// Commands and handshake results waiting for a media thread.
  static let threadMailbox = 16_384
  /// Datagrams waiting for the DTLS thread; beyond that they are dropped, and the client's timer sends them again.
  static let handshakeMailbox = 4_096
  /// Associations at a time, the lingering ones included.
  static let associations = 8_192
  /// Legs that the DTLS thread remembers, finished ones included.
  static let handshakes = 65_536
  /// How long a finished association answers retransmissions (then its 74 KB are freed).
  static let associationLinger: Duration = .seconds(30)
  /// A handshake that has not finished by then is given up.
  static let handshakeDeadline: Duration = .seconds(30)
  /// Datagrams in one `recvmmsg` or `sendmmsg`.
  static let datagramsPerBatch = 32
  /// Bytes read of one datagram; a longer one is dropped and counted.
  static let datagramBytes = 1_600
  /// Batches read from one socket before others get their turn.
  static let batchesPerTurn = 8
  /// 1 ms slots that ticks are spread over.
  static let tickSlots = 20
  /// A thread further behind than this leaves ticks out, counted.
  static let ticksBehind: Duration = .milliseconds(200)
  /// Commands taken from the mailbox in one turn.
  static let commandsPerTurn = 256
  /// Receive and send buffers asked of the kernel for the app socket.
  static let appSocketBuffer: Int32 = 4 << 20
  static let trunkSocketBuffer: Int32 = 256 << 10
  /// Commands that must not be lost (`close`) and found the mailbox full: kept by the façade and sent again.
  static let undelivered = 4_096
}
