public import TrunklineBytes
import TrunklineClient
import TrunklineClientMachines
import TrunklinePlatform

/// Many phones in one process: the SDK's machine for each, one event loop, one thread for all WebSockets. Speech is coded once
/// and replayed as PCMU, which the gateway relays. A phone answers automatically or on a command. Commands are for any thread.
public final class PhoneFleet: Sendable {
  /// One phone; a file of phones has one JSON object per line.
  public struct Member: Codable, Sendable {
    public var name: String
    public var token: String
    public var device: String
    /// Seconds from ringing to the answer; nil: it rings until a command answers it.
    public var answerAfter: Double?
    public init(name: String, token: String, device: String, answerAfter: Double? = nil) {
      (self.name, self.token, self.device, self.answerAfter) = (name, token, device, answerAfter)
    }
  }

  public struct Options: Sendable {
    public var url = "ws://127.0.0.1:8080/v1/connect"
    /// Address of the phones' media sockets.
    public var mediaAddress = IPAddress.loopback
    public var members: [Member] = []
    /// Logins started per second.
    public var loginsPerSecond = 100.0
    public init() {}
  }

  private let state: LoopBound<FleetLoop>

  public init(_ options: Options, random: RandomSource = .system, emit: @escaping @Sendable (PeerEvent) -> Void) throws {
    let phones = try FleetLoop(options, random: random, emit: emit)
    let state = LoopBound(phones, to: phones.loop)
    // Weak, as the phones have the pool.
    phones.pool = try WebSocketPool(
      endpoint: try WebSocketPool.Endpoint(url: options.url, isInsecure: true), count: options.members.count * FleetLoop.sockets
    ) { [weak state] number, event in
      state?.post { $0.received(event, on: number) }
    }
    self.state = state
  }

  /// Runs on the calling thread until `stop`.
  public func run() {
    state.post { $0.begin() }
    state.value.run()
  }

  /// Makes `run` return at once; calls are not hung up.
  public func stop() { state.post { $0.loop.stop() } }

  /// Answers the ringing calls of the phones of this name; `*`: of all.
  public func answer(_ name: String) { state.post { $0.answer(name) } }

  /// Ends the calls of the phones of this name; `*`: of all.
  public func hangUp(_ name: String) { state.post { $0.hangUp(name) } }

  /// Registers this push token (hex), by which APNs can wake the phones of this name; an event `registered` follows.
  public func register(_ name: String, token: String) { state.post { $0.register(name, token: token) } }

  /// Delivers a push to the phones of this name; one that cannot be read is ignored.
  public func push(_ name: String, _ json: [UInt8]) {
    guard let push = PushPayload(json: json) else { return }
    state.post { $0.push(name, push) }
  }

  /// Reports an event `status` for each phone that is online or has a call.
  public func reportStatus() { state.post { $0.reportStatus() } }
}
