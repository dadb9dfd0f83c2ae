{# Each row has a key of these columns, and no two have the same. #}
{% test key(model, columns) %}
select {{ columns | join(', ') }}
from {{ model }}
group by {{ columns | join(', ') }}
having count(*) > 1{% for column in columns %} or {{ column }} is null{% endfor %}
{% endtest %}


{# No row meets this condition. #}
{% test never(model, condition) %}
select *
from {{ model }}
where {{ condition }}
{% endtest %}
