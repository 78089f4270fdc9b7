import TrunklineBytes
import TrunklineDTLS
import TrunklineSRTP

/// The DTLS association of a call, in the client's role.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | none | `start` | handshaking | – |
/// | handshaking, established | `start` | same | – |
/// | handshaking, established | `receive`, `handleTimeout`, then `advance` | handshaking or established, a new deadline | established: the association's keys, each time |
/// | handshaking, established | `advance` after a failure | none | the failure, once |
/// | none | `receive`, `handleTimeout`, `advance` | none | false, or `pending` |
/// | any | `close` | none | the alert, if there was an association |
struct ClientHandshake: ~Copyable {
  enum Progress: Equatable {
    case pending, failed(DTLSFailure)
    case established(SRTPKeyMaterial)
  }

  private var association: DTLSAssociation?
  private(set) var deadline: Instant?

  init() {}

  var isRunning: Bool { association != nil }

  mutating func start(identity: DTLSIdentity, remote fingerprint: DTLSFingerprint) throws(DTLSFailure) {
    guard association == nil else { return }
    association = try DTLSAssociation(.client, identity: identity, remoteFingerprint: fingerprint)
    association?.start()
  }

  /// Whether there is an association; call `advance` next.
  mutating func receive(_ datagram: UnsafeRawBufferPointer) -> Bool {
    guard association != nil else { return false }
    association?.receive(datagram)
    return true
  }

  /// Whether a retransmission is due; call `advance` next.
  mutating func handleTimeout(at now: Instant) -> Bool {
    guard let deadline, deadline <= now else { return false }
    association?.handleTimeout()
    return true
  }

  mutating func advance(at now: Instant) -> Progress {
    // OpenSSL has a clock of its own, and rounds its last 15 ms down to nothing
    deadline = association?.timeout.map { now + max($0, Limits.handshakePause) } ?? nil
    guard let state = association?.state else { return .pending }
    switch state {
    case .established: return association?.keyMaterial.map { .established($0) } ?? .pending
    case .failed(let failure):
      association = nil
      return .failed(failure)
    case .handshaking, .unverified, .closed: return .pending
    }
  }

  /// The datagrams to send now.
  mutating func drain() -> [[UInt8]] {
    var flight: [[UInt8]] = []
    association?.drain { flight.append(Array($0)) }
    return flight
  }

  /// Returns the last datagrams to send.
  mutating func close() -> [[UInt8]] {
    association?.close()
    let flight = drain()
    association = nil
    deadline = nil
    return flight
  }
}
