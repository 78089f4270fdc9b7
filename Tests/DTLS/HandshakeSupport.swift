import CTrunklineOpenSSL
import Glibc
import TrunklineBytes
import TrunklineSRTP

@testable import TrunklineDTLS

/// Two associations and the datagrams between them; `network` decides what becomes of each.
///
/// Their retransmission timer does not grow, as it does else: which flight repairs what does not hang on how long it was waited for, and a
/// test would wait for seconds. What it grows by is tested by itself.
struct Pair: ~Copyable {
  var client: DTLSAssociation
  var server: DTLSAssociation
  var sizes: [Int] = []
  /// Called per datagram: its serial number, its bytes, whether the client sent it. The datagrams to deliver instead, in the same
  /// direction.
  var network: (Int, [UInt8], Bool) -> [[UInt8]] = { _, datagram, _ in [datagram] }

  init(
    client clientIdentity: DTLSIdentity, server serverIdentity: DTLSIdentity, clientExpects: DTLSFingerprint?,
    serverExpects: DTLSFingerprint?,
    datagramBytes: Int = 1200
  ) throws {
    let a = try DTLSAssociation(.client, identity: clientIdentity, remoteFingerprint: clientExpects, datagramBytes: datagramBytes)
    let b = try DTLSAssociation(.server, identity: serverIdentity, remoteFingerprint: serverExpects, datagramBytes: datagramBytes)
    for ssl in [a.ssl, b.ssl] { DTLS_set_timer_cb(ssl) { _, _ in DTLSAssociation.microseconds(after: 0) } }
    client = a
    server = b
  }

  /// Moves datagrams until both sides are quiet.
  mutating func exchange() {
    var isMoving = true
    while isMoving {
      isMoving = false
      for datagram in pass(client.drained(), true) {
        isMoving = true
        server.receive(datagram)
      }
      for datagram in pass(server.drained(), false) {
        isMoving = true
        client.receive(datagram)
      }
    }
  }

  private mutating func pass(_ datagrams: [[UInt8]], _ isFromClient: Bool) -> [[UInt8]] {
    var out: [[UInt8]] = []
    for datagram in datagrams {
      sizes.append(datagram.count)
      out += network(sizes.count - 1, datagram, isFromClient)
    }
    return out
  }

  /// Runs the handshake with retransmissions: OpenSSL reads the wall clock, so that this waits, at most `rounds` timeouts.
  mutating func run(rounds: Int = 40) {
    client.start()
    exchange()
    for _ in 0..<rounds {
      let waits = [client.timeout, server.timeout].compactMap { $0 }
      guard let wait = waits.min() else { return }
      poll(nil, 0, Int32(max(0, wait.milliseconds)) + 1)
      client.handleTimeout()
      server.handleTimeout()
      exchange()
    }
  }
}

extension DTLSAssociation {
  /// What waits to be sent.
  mutating func drained() -> [[UInt8]] {
    var out: [[UInt8]] = []
    drain { out.append(Array($0)) }
    return out
  }
  mutating func receive(_ datagram: [UInt8]) { datagram.withUnsafeBytes { receive($0) } }
}
