import Foundation
import TrunklineCallKit

/// What an app has already: where its gateway is, and a backend that gives its user a token. The sample keeps a token that was pasted.
enum Backend {
  struct NoToken: Error, CustomStringConvertible {
    let description = "paste a token in the settings: `trunkline token` prints one"
  }
  private static let secrets = KeychainSecrets(service: "sample-phone")

  static var gateway: String { Bundle.main.object(forInfoDictionaryKey: "TrunklineGateway") as? String ?? "" }
  static var folder: URL {
    FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
      ?? FileManager.default.temporaryDirectory
  }

  static func phoneToken() async throws -> String {
    guard let token = secrets.read("token") else { throw NoToken() }
    return String(decoding: token, as: UTF8.self)
  }

  /// The phone asks for it again by itself.
  static func keep(token: String) { secrets.write("token", Array(token.filter { !$0.isWhitespace }.utf8)) }
}
