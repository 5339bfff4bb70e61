"""What was tried before in situations like this one, and how did it end?"""

from typing import Annotated

from pydantic import Field

from harness.diagnosis import Finding
from skills.diagnose import finding_named
from skills.skill import PastEpisode, SkillContext, skill

SHOWN = 5


@skill(effect="read")
def recall_episodes(
    ctx: SkillContext, cause: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[a-z0-9_]+$")]
) -> tuple[Finding, ...]:
    """Recall changes made for the same cause on a similar stack and traffic, with how each ended, most similar first.

    Use it before proposing a change: one that was undone here lately will most likely be undone again.

    Args:
        cause: code of a finding of the present diagnosis, for example running_cap_binds.
    """
    finding = finding_named(cause, ctx)
    return tuple(_remembered(episode, finding) for episode in list(ctx.recall(cause))[:SHOWN])


def _remembered(episode: PastEpisode, finding: Finding) -> Finding:
    return Finding(
        layer=finding.layer,
        cause="past_episode",
        claim=(
            f"{episode.setting} on {episode.target} {episode.before} -> {episode.after} for {episode.cause}: "
            f"{episode.ending}, measured {episode.measured or 'nothing'}."
        ),
        severity=0.0,
        confidence=min(1.0, max(0.0, episode.similarity_ratio)),
        tunable=False,
        target=episode.target,
        evidence={
            "setting": episode.setting,
            "before": episode.before,
            "after": episode.after,
            "ending": episode.ending,
            "similarity_ratio": episode.similarity_ratio,
            "age_s": episode.age_s,
        },
    )
