"""The errors of the course tool: each reads `[where] what was met; the rule; the fix`."""


class CourseError(Exception):
    """What the course's own files get wrong: a stage.toml, a marker, a folder that is missing."""


class MarkerError(CourseError):
    """A directive that is malformed, crossed, misplaced or unknown; the message names file:line."""
