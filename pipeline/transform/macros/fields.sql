{# Written by `uv run python dev/columns.py` from tap_public_jobs/schemas. #}
{% macro fields() %}
    {{ return({
        'jobs': {
            'public_id': 'text',
            'job_title': 'text',
            'location': 'text',
            'department': 'text',
            'type': 'text',
            'seniority_level': 'text',
            'min_salary': 'number',
            'max_salary': 'number',
            'currency': 'text',
            'job_url': 'text',
            'apply_url': 'text'
        },
        'job_details': {
            'role_overview': 'text',
            'years_experience': 'number',
            'primary_language': 'text',
            'education_level': 'text',
            'knockout_questions': 'json'
        },
    }) }}
{% endmacro %}
