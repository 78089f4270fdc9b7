public import Foundation

#if !canImport(ObjectiveC)
  /// Foundation has none on Linux. A stub with the properties that an app reads when it is opened from Recents.
  open class NSUserActivity: NSObject, @unchecked Sendable {  // immutable but for `interaction`, set before it is shared
    public let activityType: String
    public internal(set) var interaction: INInteraction?

    public init(activityType: String) { self.activityType = activityType }
  }
#endif
