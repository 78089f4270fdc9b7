import CallFlow
import CallModel
import Configuration
import Control
import Logging
import OutgoingHTTP
import PushPolicy
import TrunklinePlatform

/// The operator's programs whose answer a call waits for: routing webhooks, and the verifier of caller identities.
final class WebhookComponent: WebhookOutput, Sendable {
  private let hooks: Webhooks
  private let verifier: CallerVerifier?
  private let inbox: Inbox

  init(_ settings: Settings, inbox: Inbox, logs: Logs) throws {
    self.inbox = inbox
    hooks = try Webhooks(tls: TLSFiles(authorities: settings.routes.webhookAuthorities), logger: logs.logger("webhook")) {
      [inbox] call, answer in
      inbox.post(.routed(call, answer))
    } user: { [inbox] question, answer in
      inbox.post(.userKnown(question, answer))
    }
    verifier = try settings.verifier.map {
      try CallerVerifier(url: $0.url, authorities: $0.authorities, logger: logs.logger("verify"))
    }
  }

  func ask(_ question: RouteQuestion, _ hook: Webhook) { hooks.ask(question, hook) }

  func ask(_ question: UserQuestion, _ hook: Webhook) {
    if !hooks.ask(question, hook) { inbox.post(.userKnown(question, nil)) }
  }

  func verify(_ call: CallID, _ question: IdentityQuestion) {
    verifier?.ask(CallerQuestion(identities: question.identities, from: question.from, to: question.to, date: question.date)) {
      [inbox] in inbox.post(.verified(call, attestation: $0))
    }
  }

  func reload(_ new: Settings) { hooks.replace(TLSFiles(authorities: new.routes.webhookAuthorities)) }

  var metrics: [MetricFamily] { hooks.metrics + (verifier?.metrics ?? []) }
  var queue: MailboxReading { hooks.queue }

  func stop() {
    hooks.stop()
    verifier?.stop()
  }
}
