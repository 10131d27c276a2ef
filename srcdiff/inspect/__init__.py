"""Inspection of derivatives: explanations, side-by-side views and reports, as text and HTML."""
