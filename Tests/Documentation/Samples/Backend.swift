import Foundation

// What the articles' samples have of an app's own.

/// What an app has already: a backend that gives its user a token.
enum Backend {
  static func phoneToken() async throws -> String { throw CancellationError() }
}

/// A row of the app's address book.
struct Row {
  var text: String
  var name: String
  var isSpam: Bool
}

/// The app's log.
func log(_ text: String) {}
