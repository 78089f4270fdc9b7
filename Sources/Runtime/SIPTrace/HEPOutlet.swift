public import Logging
import Synchronization
public import TrunklineBytes
public import TrunklinePlatform
public import TrunklineSIPDialogs

/// Sends every SIP message to a capture server, such as Homer, as HEP3 over UDP.
///
///     let outlet = try HEPOutlet(to: server, captureID: 2001, key: [], logger: logger)
///     outlet.saw(message.bytes, message.flow, isOurs: true, trunk: "carrier")      // the control thread
///     outlet.stop()
///
/// The control thread passes a reference on and returns; the thread `hep` masks and sends. A missing or slow server costs only
/// datagrams: a message that the queue or the socket does not accept is dropped and counted.
public final class HEPOutlet: Sendable {
  private let server: SocketAddress
  private let captureID: UInt32
  private let key: [UInt8]
  private let mailbox: Mailbox<TracedMessage>
  private let isOver = Atomic<Bool>(false)
  private let thread = Mutex<NamedThread?>(nil)
  private let sent = Counter()
  private let dropped = Counter()

  /// Throws if no socket can be made.
  public init(to server: SocketAddress, captureID: UInt32, key: [UInt8], logger: Logger) throws(SystemError) {
    (self.server, self.captureID, self.key) = (server, captureID, key)
    mailbox = try Mailbox(capacity: Limits.hepQueue)
    let socket = try UDPSocket(bind: SocketAddress(server.ip.family == .v4 ? IPAddress(0, 0, 0, 0) : .any6, 0), setting: "hep")
    let running = try NamedThread.start(name: "hep", logger: logger) { [self] in run(socket) }
    thread.withLock { $0 = running }
  }

  /// A message as it was received or sent. Any thread.
  public func saw(_ bytes: [UInt8], _ flow: Flow, isOurs: Bool, trunk: String) {
    let message = TracedMessage(bytes: bytes, flow: flow, isOurs: isOurs, trunk: trunk, at: WallClock.nowMicroseconds())
    if !mailbox.post(message) { dropped.increment() }
  }

  public func stop() {
    isOver.store(true, ordering: .releasing)
    mailbox.event.signal()
    thread.withLock { $0 }?.join()
  }

  public var metrics: [MetricFamily] {
    [
      MetricFamily(
        name: "trunkline_hep_packets_total", help: "SIP messages for the capture server.", kind: .counter, labelNames: ["result"]
      ) { [sent, dropped] in
        [
          MetricSample(["sent"], .integer(Int64(clamping: sent.value))),
          MetricSample(["dropped"], .integer(Int64(clamping: dropped.value))),
        ]
      }
    ]
  }

  private func run(_ socket: UDPSocket) {
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    var batch: [TracedMessage] = []
    while !isOver.load(ordering: .acquiring) {
      mailbox.wait(into: &batch, heartbeat: heartbeat)
      for message in batch {
        var payload = message.bytes
        SecretMask.apply(to: &payload)
        let packet = HEP3.packet(message, payload: payload, captureID: captureID, key: key)
        // the next send reports an ICMP error of an earlier datagram, which is no reason to drop this one
        let isSent = packet.map { ((try? socket.send($0, to: server)) ?? (try? socket.send($0, to: server))) == true } ?? false
        (isSent ? sent : dropped).increment()
      }
      batch.removeAll(keepingCapacity: true)
    }
  }
}
