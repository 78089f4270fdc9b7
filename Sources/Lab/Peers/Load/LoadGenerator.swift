public import TrunklineBytes
import TrunklineClient
import TrunklinePlatform

/// Plays many calls through a gateway at once: a carrier with SIP and RTP on one side, apps with WebSocket, ICE, DTLS-SRTP and
/// Opus (or PCMU) on the other. Speech is coded once and replayed. One event loop thread with a step of 1 ms in which a twentieth
/// of the calls speak, and one WebSocket thread for all apps.
public final class LoadGenerator: Sendable {
  /// Logins started per second; the gateway limits simultaneous greetings.
  public static let loginsPerSecond = 50.0

  private let state: LoopBound<LoadLoop>

  /// Binds all sockets; throws with the address that is in use.
  /// - Parameter onHold: called when all calls are up (`true`) and when they begin to end (`false`), by the thread in `run`.
  public init(
    _ options: LoadOptions, random: RandomSource = .system, onHold: @escaping (Bool) -> Void,
    report: @escaping (String) -> Void
  ) throws {
    let load = try LoadLoop(options, random: random, onHold: onHold, report: report)
    let state = LoopBound(load, to: load.loop)
    // Weak, as the calls have the pool. The second half of the sockets is for sessions at further nodes.
    load.webSockets = try WebSocketPool(
      endpoint: try WebSocketPool.Endpoint(url: options.url, isInsecure: true), count: 2 * load.calls.count
    ) { [weak state] number, event in
      state?.post { $0.received(event, on: number) }
    }
    self.state = state
  }

  /// Any thread: hangs up, then `run` returns.
  public func stop() { state.post { $0.stop() } }

  /// Runs on the calling thread until the last call is over.
  public func run() -> LoadResult {
    state.post { $0.begin() }
    return state.value.run()
  }
}
