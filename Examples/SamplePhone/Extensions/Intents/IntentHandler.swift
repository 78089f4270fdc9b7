import Foundation
import Intents

/// Siri's, and that of calls which the system starts: whom to call is in the intent, and the app makes the call.
///
/// It links nothing of Trunkline: an extension must not call by itself.
final class IntentHandler: INExtension, INStartCallIntentHandling {
  override func handler(for intent: INIntent) -> Any? { intent is INStartCallIntent ? self : nil }

  /// What the user said, as it is: the gateway knows which numbers exist. An app with contacts of its own would look them up here.
  func resolveContacts(for intent: INStartCallIntent, with completion: @escaping ([INStartCallContactResolutionResult]) -> Void) {
    let people = intent.contacts ?? []
    let results = people.isEmpty ? [INPersonResolutionResult.needsValue()] : people.map { .success(with: $0) }
    completion(results.map { INStartCallContactResolutionResult(personResolutionResult: $0) })
  }

  /// The system puts the intent into the activity's interaction, and hands it to the app: `Phone.callActivity`.
  func handle(intent: INStartCallIntent, completion: @escaping (INStartCallIntentResponse) -> Void) {
    guard let person = intent.contacts?.first?.personHandle, person.value?.isEmpty == false else {
      return completion(INStartCallIntentResponse(code: .failureContactNotSupportedByApp, userActivity: nil))
    }
    completion(
      INStartCallIntentResponse(code: .continueInApp, userActivity: NSUserActivity(activityType: "INStartCallIntent")))
  }
}
