public import Foundation

/// What a user activity is about.
open class INInteraction: NSObject, @unchecked Sendable {  // immutable
  public let intent: INIntent

  init(intent: INIntent) { self.intent = intent }
}
