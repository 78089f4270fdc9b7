// The named limits of this module, with every bound on a queue, table or message.
enum Limits {
  /// Media threads of one process.
  static let threads = 64
  /// Calls on one media thread; further reservations are refused.
  static let sessionsPerThread = 4_096
  /// Addresses of app legs that one thread distinguishes.
  static let appAddresses = 16_384
  /// Addresses of one leg kept in the table; older ones are removed.
  static let addressesPerSession = 32
  /// Commands and handshake results waiting for a media thread.
  static let threadMailbox = 16_384
  /// Datagrams waiting for the DTLS thread; beyond that they are dropped, and the client's timer sends them again.
  static let handshakeMailbox = 4_096
  /// With more datagrams than this waiting (about 0.3 s of work) no new handshake starts, so that running ones finish.
  static let handshakeBacklog = 512
  /// Datagrams read from the mailbox in one step of the DTLS thread.
  static let handshakesPerStep = 16
  /// Handshakes that run at a time, 74 KB each.
  static let associations = 2_048
  /// ClientHellos of one leg that are answered side by side: the one that the certificate follows is the peer's.
  static let attemptsAtOnce = 4
  /// Further ClientHellos in a second, of a leg (with a burst of as many) and of all: our answer costs 60 µs of CPU.
  static let attemptsPerSecond = 8
  static let attemptsOfAllPerSecond = 800
  static let attemptBurst = 80
  /// Legs that the DTLS thread remembers, finished ones included.
  static let handshakes = 65_536
  /// How long after a handshake its last flight is kept, to answer a peer that did not get it.
  static let flightKept: Duration = .seconds(30)
  /// How often that flight is sent again.
  static let flightRepeats = 12
  /// A handshake that has not finished by then is given up.
  static let handshakeDeadline: Duration = .seconds(30)
  /// Datagrams in one `recvmmsg` or `sendmmsg`.
  static let datagramsPerBatch = 32
  /// The same for one call's socket, where a second datagram waits only after a gap.
  static let datagramsPerTrunkBatch = 4
  /// From this number of sockets ready at once, datagrams are gathered before they are sent.
  static let crowdedStep = 24
  /// Bytes read of one datagram; a longer one is dropped and counted.
  static let datagramBytes = 1_600
  /// Batches read from one socket before other sockets are read.
  static let batchesPerStep = 8
  /// 1 ms slots that ticks are spread over.
  static let tickSlots = 20
  /// A thread further behind than this skips ticks, and counts them.
  static let ticksBehind: Duration = .milliseconds(200)
  /// How often a thread measures its own load.
  static let loadSamplesPerSecond = 10
  static let loadInterval: Duration = .milliseconds(100)
  /// Ticks later than the first are strain, which lowers the encoders' complexity; later than the second, overload.
  static let tickStrain: Duration = .milliseconds(2)
  static let tickOverload: Duration = .milliseconds(10)
  /// Share of a core that one media thread may fill with calls; the rest is for bursts and for the work at a call's end.
  static let loadLimit = 0.85
  /// Parts of that limit: above the first complexity falls, below the second it rises, below the third new calls are accepted
  /// again.
  static let lowerAt = 0.7
  static let raiseBelow = 0.5
  static let admitAgainAt = 0.9
  /// Ticks of a thread that uses less than this part of its limit are not late by its own fault.
  static let lateByOwnFault = 0.25
  static let calmBeforeRaise: Duration = .seconds(5)
  /// Bounds of the assumed cost of a call, as a share of a core, and the number of calls that the assumption counts for.
  static let leastCallCost = 0.000_1
  static let mostCallCost = 0.1
  static let assumedCalls = 4.0
  /// Commands read from the mailbox in one step.
  static let commandsPerStep = 256
  /// Receive and send buffers requested from the kernel for the app socket.
  static let appSocketBuffer: Int32 = 4 << 20
  static let trunkSocketBuffer: Int32 = 256 << 10
  /// Addresses that the machine no longer has, whose app sockets are kept for calls that still use them and for an interface that
  /// returns.
  static let absentAddresses = 16
  /// Commands that must not be lost (`close`) and found the mailbox full: the façade keeps them and sends them again.
  static let undelivered = 4_096
}
