import Foundation

/// What an app has already: a backend that gives its user a token.
enum Backend {
  struct NoToken: Error, CustomStringConvertible { let description = "PHONE_TOKEN is not set" }
  static func phoneToken() async throws -> String {
    guard let token = ProcessInfo.processInfo.environment["PHONE_TOKEN"] else { throw NoToken() }
    return token
  }
}
