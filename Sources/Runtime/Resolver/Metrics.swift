import TrunklinePlatform
import TrunklineSIPDialogs

/// What the resolver counts.
final class ResolverMetrics: Sendable {
  enum Outcome: String, CaseIterable, Sendable {
    case records
    /// No such name or record.
    case none
    /// No answer, or an unusable one.
    case failed
  }
  let questions = LabelledCounters<DNSQuestion.Kind>()
  let answers = LabelledCounters<Outcome>()

  var families: [MetricFamily] {
    [
      .counters("trunkline_dns_questions_total", help: "Queries to the name servers, by record type.", label: "type", questions),
      .counters("trunkline_dns_answers_total", help: "Queries to the name servers, by outcome.", label: "outcome", answers),
    ]
  }
}
