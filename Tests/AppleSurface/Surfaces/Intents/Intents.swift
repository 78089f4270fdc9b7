// The parts of Intents that an intents extension which starts calls uses, beyond those in AppleStandIn.
@_exported public import AppleStandIn
public import Foundation

/// Intents/INIntentHandlerProviding.h
public protocol INIntentHandlerProviding: NSObjectProtocol {
  func handler(for intent: INIntent) -> Any?
}
/// Intents/INExtension.h
open class INExtension: NSObject, INIntentHandlerProviding {
  open func handler(for intent: INIntent) -> Any? { nil }
}
/// Intents/INIntentResponse.h
open class INIntentResponse: NSObject {
  public var userActivity: NSUserActivity?
}
/// Intents/INStartCallIntentResponse.h
public enum INStartCallIntentResponseCode: Int, Sendable {
  case unspecified, ready, continueInApp, userConfirmationRequired, failure, failureRequiringAppLaunch
  case failureCallingServiceNotAvailable, failureContactNotSupportedByApp, failureAirplaneModeEnabled, failureUnableToHandOff
  case failureAppConfigurationRequired, failureCallInProgress, failureCallRinging
}
/// Intents/INStartCallIntentResponse.h
open class INStartCallIntentResponse: INIntentResponse {
  public let code: INStartCallIntentResponseCode
  public init(code: INStartCallIntentResponseCode, userActivity: NSUserActivity?) {
    self.code = code
    super.init()
    self.userActivity = userActivity
  }
}
/// Intents/INPersonResolutionResult.h, INIntentResolutionResult.h
open class INPersonResolutionResult: NSObject {
  public let resolved: INPerson?
  init(_ resolved: INPerson?) { self.resolved = resolved }
  public class func success(with resolvedPerson: INPerson) -> Self {
    unsafeDowncast(INPersonResolutionResult(resolvedPerson), to: Self.self)
  }
  public class func needsValue() -> Self { unsafeDowncast(INPersonResolutionResult(nil), to: Self.self) }
}
/// Intents/INStartCallIntentResolutionResult.h
open class INStartCallContactResolutionResult: INPersonResolutionResult {
  public convenience init(personResolutionResult: INPersonResolutionResult) { self.init(personResolutionResult.resolved) }
}
/// Intents/INStartCallIntent.h: all but `handle` is optional
public protocol INStartCallIntentHandling: NSObjectProtocol {
  func handle(intent: INStartCallIntent, completion: @escaping (INStartCallIntentResponse) -> Void)
  func confirm(intent: INStartCallIntent, completion: @escaping (INStartCallIntentResponse) -> Void)
  func resolveContacts(for intent: INStartCallIntent, with completion: @escaping ([INStartCallContactResolutionResult]) -> Void)
}
extension INStartCallIntentHandling {
  public func confirm(intent: INStartCallIntent, completion: @escaping (INStartCallIntentResponse) -> Void) {
    completion(INStartCallIntentResponse(code: .ready, userActivity: nil))
  }
  public func resolveContacts(
    for intent: INStartCallIntent, with completion: @escaping ([INStartCallContactResolutionResult]) -> Void
  ) { completion([]) }
}
