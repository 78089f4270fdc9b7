public import Foundation

#if !canImport(ObjectiveC)
  /// Foundation has none on Linux. A stub: what an app that is opened from Recents reads.
  open class NSUserActivity: NSObject, @unchecked Sendable {  // immutable but for `interaction`, set before anybody sees it
    public let activityType: String
    public internal(set) var interaction: INInteraction?

    public init(activityType: String) { self.activityType = activityType }
  }
#endif
