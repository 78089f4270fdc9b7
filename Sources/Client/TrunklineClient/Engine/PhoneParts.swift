import Foundation
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// The parts of a phone.
struct PhoneParts: Sendable {
  var gateway: String
  var configuration: PhoneMachine.Configuration
  var system: any CallSystem
  var audio: any AudioDevice
  var sockets: any SocketConnector
  var secrets: any SecretStore
  var paths: (any PathMonitor)?
  var routes: (any AudioRoutes)?
  var token: @Sendable () async throws -> String
  /// Time limits of the app's closure, and of one phase of the audio device.
  var tokenTime = Duration.seconds(30)
  var audioTime = Duration.seconds(3)
  /// Pushes contain the caller sealed for this installation.
  var sealsCallers = false

  /// A gateway on loopback may offer its media there too.
  static func isLoopback(_ gateway: String) -> Bool {
    let host = URLComponents(string: gateway)?.host ?? ""
    return host == "localhost" || IPAddress(host)?.isLoopback == true
  }
}

enum SecretKey {
  /// The id by which the gateway knows this installation: a wake before the first login needs it.
  static let deviceID = "device-id"
  /// A logout that the gateway has not received yet.
  static let loggingOut = "logging-out"
  /// Written while a trace is recorded, to check whether writes succeed.
  static let probe = "trace-probe"
  /// The private key for sealed callers.
  static let sealKey = "seal-key"
}

/// The claims of a JSON web token that the device needs. They are not verified here.
struct TokenClaims: Decodable {
  var dev: String?
  /// Seconds since 1970.
  var exp: Int64?

  private enum CodingKeys: String, CodingKey { case dev, exp }

  /// An invalid claim does not affect the other.
  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    dev = try? values.decodeIfPresent(String.self, forKey: .dev)
    exp = (try? values.decodeIfPresent(Double.self, forKey: .exp)).flatMap { Int64(exactly: $0.rounded(.down)) }
  }

  init?(_ token: String) {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var text = parts[1].map { $0 == "-" ? "+" : $0 == "_" ? "/" : String($0) }.joined()
    text += String(repeating: "=", count: (4 - text.count % 4) % 4)
    guard let data = Data(base64Encoded: text), let claims = try? JSONDecoder().decode(Self.self, from: data) else { return nil }
    self = claims
  }
}

/// The text cannot be a token for any gateway.
struct NoToken: Error, CustomStringConvertible {
  let description = "what it returned is not a token"
  static let longest = 16_384

  /// - Throws: `NoToken` for anything but one line of printable ASCII.
  static func check(_ text: String) throws {
    guard (1...longest).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw NoToken() }
  }
}

/// A continuation that the first caller resumes.
final class Once<Value: Sendable>: Sendable {
  private let continuation: Mutex<CheckedContinuation<Value, Never>?>
  init(_ continuation: CheckedContinuation<Value, Never>) { self.continuation = Mutex(continuation) }
  func resume(_ value: Value) {
    let removed = continuation.withLock { continuation in
      defer { continuation = nil }
      return continuation
    }
    removed?.resume(returning: value)
  }
}
